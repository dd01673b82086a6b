//! Crashes of the process that delivers notifications.

use delegator_domain::crash::CrashPoint;
use delegator_testkit::program::read_text;

use super::Stage;
use crate::scripted::wait_until;

/// An attempt that was only counted is made again; one whose success was recorded is not.
pub(super) fn crash_while_delivering(stage: &mut Stage, name: &str, point: CrashPoint) {
    let config = "[notify]\ncommand = ['sh', '-c', 'echo $NOTIFICATION_ATTEMPT >> ~/notified']\n";
    stage.world.write("home/.config/mcp-delegator/config.toml", config);
    stage.release_agent();
    let mut command = stage.command_with_crash_point(name, &["local", "exec", "do it"]);
    let output = command
        .env("MCP_DELEGATOR_TEST_INHERIT", "MCP_DELEGATOR_TEST_RETRY_MS")
        .env("MCP_DELEGATOR_TEST_RETRY_MS", "100")
        .output()
        .unwrap();
    stage.acknowledge(&serde_json::from_slice(&output.stdout).unwrap());
    wait_until("the delivery process has crashed", || stage.crashes() > 0);
    wait_until("nothing is left to send", || {
        stage.run_json(&["local", "status"]);
        stage.registry().next_notification_at().unwrap().is_none()
    });
    let expected = if point == CrashPoint::NotificationSettled { "1\n" } else { "2\n" };
    assert_eq!(read_text(&stage.root.join("home/notified")), expected, "{name}");
}
