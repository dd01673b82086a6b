//! The files in `.sqlx`, against which queries are checked at compile time, describe the real tables.

use std::fs;
use std::path::Path;

use delegator_fleet::{Database, DatabaseUrl};
use delegator_testkit::postgres::PostgresServer;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqlSafeStr};

#[test]
fn the_cached_queries_fit_the_tables() {
    let server = PostgresServer::options().fast().start();
    let url = server.url();
    Database::new(&DatabaseUrl::parse(&url).unwrap()).migrate().unwrap();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(".sqlx");
    let files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = PgConnection::connect(&url).await.unwrap();
        for file in files {
            let cached: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            let query = cached["query"].as_str().unwrap().to_owned();
            let described = connection.describe(AssertSqlSafe(query).into_sql_str()).await.unwrap();
            let described = serde_json::to_value(&described).unwrap();
            // Not "nullable": for an outer join it depends on the plan of the query.
            for part in ["columns", "parameters"] {
                let name = file.file_name().unwrap().display();
                assert_eq!(described[part], cached["describe"][part], "{name}: run scripts/prepare-queries");
            }
        }
    });
}
