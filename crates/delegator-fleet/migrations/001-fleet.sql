-- Tasks, the sessions of workers, and what the workers report.
--
-- Only the database's clock counts. The attempt number of a task is its fencing token: it grows with every claim, and every
-- write of a worker names task, attempt and session.

-- One row for each run of a worker process. It holds the lease of all its tasks.
create table delegator.sessions (
    id text primary key,
    worker text not null,
    workspace text not null,
    version text not null,
    slots integer not null,
    labels text not null check (jsonb_typeof(labels::jsonb) = 'object'),
    lease interval not null,
    lease_until timestamptz not null,
    opened_at timestamptz not null default now(),
    heartbeat_at timestamptz not null default now(),
    is_draining boolean not null default false,
    ended_at timestamptz,
    end_reason text check (end_reason in ('closed', 'lost', 'replaced'))
);
create unique index sessions_live on delegator.sessions (worker) where ended_at is null;

-- Workers that must not claim tasks; the empty name is the whole fleet.
create table delegator.pauses (
    worker text primary key,
    paused_at timestamptz not null default now()
);

create table delegator.tasks (
    id text primary key,
    seq bigint generated always as identity,
    state text not null default 'queued'
        check (state in ('queued', 'claimed', 'running', 'completed', 'failed', 'timeout', 'cancelled')),
    attempt integer not null default 0,
    starts integer not null default 0,
    session text references delegator.sessions (id),
    idempotency_key text unique,
    request_hash text,
    spec_version integer not null,
    spec text not null,
    -- What operators see of the specification. `submitter_task` is the id that the task has on the machine that submitted it.
    environment text not null default '',
    title text not null default '',
    submitter_task text,
    labels text not null check (jsonb_typeof(labels::jsonb) = 'object'),
    priority bigint not null,
    on_lost text not null check (on_lost in ('fail', 'retry')),
    max_claims integer not null,
    cancel_requested_at timestamptz,
    created_at timestamptz not null default now(),
    started_at timestamptz,
    ended_at timestamptz,
    failure_kind text,
    limit_kind text,
    message text,
    retry_at_ms bigint,
    result text,
    stored_bytes bigint not null default 0,
    check ((state in ('claimed', 'running')) = (session is not null)),
    check ((state in ('completed', 'failed', 'timeout', 'cancelled')) = (ended_at is not null)),
    check ((idempotency_key is null) = (request_hash is null))
);
create index tasks_queue on delegator.tasks (labels, priority desc, seq) where state = 'queued';
create index tasks_session on delegator.tasks (session) where session is not null;
create index tasks_ended on delegator.tasks (ended_at, id) include (stored_bytes) where ended_at is not null;
create index tasks_submitter_task on delegator.tasks (submitter_task) where submitter_task is not null;
create index tasks_open on delegator.tasks (state, created_at) where ended_at is null;

create table delegator.attempts (
    task text not null references delegator.tasks (id) on delete cascade,
    attempt integer not null,
    session text not null,
    worker text not null,
    claimed_at timestamptz not null default now(),
    ended_at timestamptz,
    -- The terminal state, or 'released', 'lost' or, if it was lost before its start, 'lost_claim'.
    outcome text,
    event_bytes bigint not null default 0,
    primary key (task, attempt)
);
create index attempts_lost on delegator.attempts (ended_at) where outcome = 'lost';

-- The event stream of an attempt, contiguous from offset 0.
create table delegator.event_chunks (
    task text not null,
    attempt integer not null,
    byte_offset bigint not null,
    bytes bytea not null,
    primary key (task, attempt, byte_offset),
    foreign key (task, attempt) references delegator.attempts (task, attempt) on delete cascade
);

-- Results may refer to sealed blobs only.
create table delegator.blobs (
    task text not null,
    attempt integer not null,
    name text not null,
    size bigint not null,
    sha256 bytea not null,
    is_sealed boolean not null default false,
    primary key (task, attempt, name),
    foreign key (task, attempt) references delegator.attempts (task, attempt) on delete cascade
);
create table delegator.blob_parts (
    task text not null,
    attempt integer not null,
    name text not null,
    part integer not null,
    bytes bytea not null check (length(bytes) <= 524288),
    primary key (task, attempt, name, part),
    foreign key (task, attempt, name) references delegator.blobs (task, attempt, name) on delete cascade
);

-- When the fleet last deleted old tasks: one worker does it for all.
create table delegator.upkeep (
    only_row boolean primary key default true check (only_row),
    pruned_at timestamptz not null
);
insert into delegator.upkeep (pruned_at) values ('-infinity');

-- The server that the sessions last had contact with, and since when. See delegator.expire_sessions.
create table delegator.server (
    only_row boolean primary key default true check (only_row),
    identity text not null,
    since timestamptz not null
);

-- Another value after a restart, on a promoted standby, and in a restored database.
create function delegator.server_identity() returns text language sql stable as $$
    select extract(epoch from pg_postmaster_start_time())::text || ' ' || 'delegator.server'::regclass::oid::text
$$;
insert into delegator.server (identity, since) values (delegator.server_identity(), '-infinity');

create function delegator.protect_ended_tasks() returns trigger language plpgsql as $$
begin
    if old.ended_at is not null then
        raise exception 'the task % has ended and must not change', old.id;
    end if;
    if new.attempt < old.attempt then
        raise exception 'the attempt of the task % must not decrease', old.id;
    end if;
    return new;
end
$$;
create trigger protect_ended_tasks before update on delegator.tasks
    for each row execute function delegator.protect_ended_tasks();

create function delegator.stored_bytes(of_task text) returns bigint language sql stable as $$
    select coalesce((select sum(event_bytes) from delegator.attempts where task = of_task), 0)::bigint
        + coalesce((select sum(size) from delegator.blobs where task = of_task), 0)::bigint
$$;

-- Ends the attempt of a task whose worker is gone, if it still belongs to this session and, where `only_state` is given, is
-- in this state. A cancelled task is cancelled. A task that was released before its start is queued again, and so is one
-- whose worker was lost before its start, unless that happened too often: the task itself may be what ends its workers. A
-- started one fails, or is queued again if its environment permits that.
create function delegator.lose_task(
    lost_task text, lost_attempt integer, owner text, only_state text, cause text) returns void
language plpgsql as $$
declare
    task delegator.tasks%rowtype;
    attempt_outcome text;
    lost_claims bigint;
begin
    select * into task from delegator.tasks t
        where t.id = lost_task and t.attempt = lost_attempt and t.session = owner
            and (only_state is null or t.state = only_state) for update;
    if not found then
        return;
    end if;
    attempt_outcome := case
        when task.state = 'running' then 'lost'
        when exists (select from delegator.sessions s where s.id = owner and s.end_reason in ('lost', 'replaced'))
            then 'lost_claim'
        else 'released' end;
    update delegator.attempts a set ended_at = now(), outcome = attempt_outcome
        where a.task = lost_task and a.attempt = lost_attempt;
    select count(*) into lost_claims from delegator.attempts a
        where a.task = lost_task and a.outcome = 'lost_claim';
    if task.cancel_requested_at is not null then
        update delegator.tasks t
            set state = 'cancelled', session = null, ended_at = now(), stored_bytes = delegator.stored_bytes(t.id)
            where t.id = lost_task;
    elsif attempt_outcome = 'released'
        or (attempt_outcome = 'lost_claim' and lost_claims < greatest(5, task.max_claims))
        or (attempt_outcome = 'lost' and task.on_lost = 'retry' and task.starts < task.max_claims) then
        update delegator.tasks t set state = 'queued', session = null where t.id = lost_task;
        perform pg_notify('delegator', 'queued');
    else
        update delegator.tasks t
            set state = 'failed', session = null, ended_at = now(), failure_kind = 'worker_lost',
                message = case when attempt_outcome = 'lost' then cause
                    else format('%s workers were lost before they had started the task; of the last one: %s', lost_claims, cause) end,
                stored_bytes = delegator.stored_bytes(t.id)
            where t.id = lost_task;
    end if;
end
$$;

-- Ends the sessions whose lease has passed. On another server than before, or the same one started again, nothing expires
-- for one lease: workers could not renew theirs meanwhile. A session with a task that another transaction changes is left to the next call, so
-- that no caller waits. Security definer: submitters may call it, so that a lost task ends even if no worker is left.
create function delegator.expire_sessions() returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    lost delegator.sessions%rowtype;
    owned record;
    cause text;
    expired integer := 0;
begin
    update delegator.server set identity = delegator.server_identity(), since = now()
        where identity <> delegator.server_identity();
    for lost in
        select * from delegator.sessions s
        where s.ended_at is null and s.lease_until < now()
            and (select since from delegator.server) + s.lease < now()
        order by s.id for update skip locked
    loop
        begin
            perform 1 from delegator.tasks t where t.session = lost.id order by t.id for update nowait;
            update delegator.sessions s set ended_at = now(), end_reason = 'lost' where s.id = lost.id;
            cause := format('the worker %s sent no heartbeat for %s s', lost.worker, extract(epoch from lost.lease)::bigint);
            for owned in select t.id, t.attempt from delegator.tasks t where t.session = lost.id order by t.id loop
                perform delegator.lose_task(owned.id, owned.attempt, lost.id, null, cause);
            end loop;
            expired := expired + 1;
        exception when lock_not_available then
            null;
        end;
    end loop;
    return expired;
end
$$;

-- Cancels a task that has not started, or requests it from the worker. Returns the state afterwards, or null if there is no
-- such task. Security definer: a submitter may not write to the table.
create function delegator.request_cancel(cancelled_task text, reason text) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    task delegator.tasks%rowtype;
begin
    select * into task from delegator.tasks t where t.id = cancelled_task for update;
    if not found or task.ended_at is not null then
        return task.state;
    end if;
    if task.state = 'running' then
        if task.cancel_requested_at is null then
            update delegator.tasks t set cancel_requested_at = now(), message = reason where t.id = cancelled_task;
        end if;
        perform pg_notify('delegator', task.session);
        return 'running';
    end if;
    update delegator.attempts a set ended_at = now(), outcome = 'cancelled'
        where a.task = task.id and a.attempt = task.attempt and a.ended_at is null;
    update delegator.tasks t
        set state = 'cancelled', session = null, cancel_requested_at = now(), message = reason, ended_at = now(),
            stored_bytes = delegator.stored_bytes(t.id)
        where t.id = cancelled_task;
    return 'cancelled';
end
$$;

-- Makes final that a task was not accepted: a submission of this id that is still under way has no effect afterwards.
-- Returns false if there is such a task. Security definer: a submitter may not choose the state of a task.
create function delegator.refuse_task(refused_task text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into delegator.tasks
            (id, state, spec_version, spec, labels, priority, on_lost, max_claims, ended_at, failure_kind, message)
        values (refused_task, 'failed', 1, '{}', '{}', 0, 'fail', 1, now(), 'not_accepted', 'its submission was interrupted')
        on conflict do nothing;
    return exists (select from delegator.tasks t where t.id = refused_task and t.failure_kind = 'not_accepted');
end
$$;

-- Workers write through functions only, so that the role of the workers needs no right to write to a table.
--
-- The worker alone knows the secret of its session; the id of the session is the secret's hash. Each function that a worker
-- calls takes the secret, and changes only what belongs to that session. A call of another session, and one that comes too
-- late, changes nothing and returns null or false.

create function delegator.session_id(secret text) returns text language sql immutable strict
set search_path = pg_catalog, pg_temp as $$
    select encode(sha256(convert_to(secret, 'UTF8')), 'hex')
$$;

-- Ends the earlier sessions of the workspace: their claimed tasks are queued again, and their running ones get the new
-- session. Returns false if the name is in use; the caller must roll back then.
create function delegator.open_session(
    secret text, worker_name text, of_workspace text, worker_version text, worker_slots integer, worker_labels text,
    lease_sec double precision) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    new_session text := delegator.session_id(secret);
begin
    update delegator.sessions s set ended_at = now(), end_reason = 'replaced'
        where s.workspace = of_workspace and s.ended_at is null;
    perform delegator.expire_sessions();
    insert into delegator.sessions (id, worker, workspace, version, slots, labels, lease, lease_until)
        values (new_session, worker_name, of_workspace, worker_version, worker_slots, worker_labels,
            make_interval(secs => lease_sec), now() + make_interval(secs => lease_sec))
        on conflict (worker) where ended_at is null do nothing;
    if not found then
        return false;
    end if;
    perform delegator.lose_task(t.id, t.attempt, t.session, 'claimed', 'it was started again')
        from delegator.tasks t join delegator.sessions s on s.id = t.session
        where s.workspace = of_workspace and s.id <> new_session and t.state = 'claimed';
    with taken as (
        update delegator.tasks t set session = new_session from delegator.sessions s
        where s.id = t.session and s.workspace = of_workspace and s.id <> new_session and t.state = 'running'
        returning t.id, t.attempt)
    update delegator.attempts a set session = new_session from taken
        where a.task = taken.id and a.attempt = taken.attempt;
    return true;
end
$$;

-- Renews the lease. No row: the session has ended.
create function delegator.heartbeat(secret text) returns table (is_draining boolean, is_paused boolean)
language sql security definer set search_path = pg_catalog, pg_temp as $$
    update delegator.sessions s set heartbeat_at = now(), lease_until = now() + s.lease
        where s.id = delegator.session_id(secret) and s.ended_at is null
        returning s.is_draining, exists (select from delegator.pauses p where p.worker in ('', s.worker))
$$;

create function delegator.close_session(secret text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update delegator.sessions s set ended_at = now(), end_reason = 'closed'
        where s.id = delegator.session_id(secret) and s.ended_at is null;
    perform delegator.lose_task(t.id, t.attempt, t.session, null, 'the worker was stopped')
        from delegator.tasks t where t.session = delegator.session_id(secret);
end
$$;

-- The first tasks of each set of labels that the worker has; of these the first by priority and age. The sets are found by
-- jumping from one to the next in the index, so the length of the queue does not matter. Statistics of a queue that was
-- just filled are wrong, and lead to a sort of the whole queue: hence no bitmap scans.
create function delegator.claim_tasks(secret text, max_tasks bigint, known_spec_version integer)
returns table (task text, attempt integer, spec text)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_bitmapscan = off set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    owner delegator.sessions%rowtype;
begin
    -- The lock prevents that the session ends, in whichever way, before the claim is committed.
    select * into owner from delegator.sessions s
        where s.id = delegator.session_id(secret) and s.ended_at is null for share;
    if not found or owner.is_draining or owner.lease_until < now()
        or exists (select from delegator.pauses p where p.worker in ('', owner.worker)) then
        return;
    end if;
    return query
        with recursive label_sets as (
            (select labels from delegator.tasks where state = 'queued' order by labels limit 1)
            union all
            select (select t.labels from delegator.tasks t
                    where t.state = 'queued' and t.labels > l.labels order by t.labels limit 1)
            from label_sets l where l.labels is not null),
         first as (
            select t.id from label_sets l
            cross join lateral (
                select id, priority, seq from delegator.tasks
                where state = 'queued' and labels = l.labels and spec_version <= known_spec_version
                order by priority desc, seq limit max_tasks for update skip locked) t
            where l.labels is not null and l.labels::jsonb <@ owner.labels::jsonb
            order by t.priority desc, t.seq limit max_tasks),
         claimed as (
            update delegator.tasks t set state = 'claimed', attempt = t.attempt + 1, session = owner.id
            from first where t.id = first.id
            returning t.id, t.attempt, t.spec),
         recorded as (
            insert into delegator.attempts (task, attempt, session, worker)
            select c.id, c.attempt, owner.id, owner.worker from claimed c)
        select c.id, c.attempt, c.spec from claimed c;
end
$$;

-- True also for a repetition.
create function delegator.start_task(secret text, of_task text, of_attempt integer) returns boolean
language sql security definer set search_path = pg_catalog, pg_temp as $$
    update delegator.tasks set state = 'running', starts = starts + 1, started_at = now()
        where id = of_task and attempt = of_attempt and session = delegator.session_id(secret) and state = 'claimed';
    select exists (select from delegator.tasks
        where id = of_task and attempt = of_attempt and session = delegator.session_id(secret) and state = 'running')
$$;

create function delegator.give_up_task(
    secret text, of_task text, of_attempt integer, only_state text, cause text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
    select delegator.lose_task(of_task, of_attempt, delegator.session_id(secret), only_state, cause)
$$;

-- True also for a repetition.
create function delegator.finish_task(
    secret text, of_task text, of_attempt integer, end_state text, end_failure_kind text, end_limit_kind text,
    end_message text, end_retry_at_ms bigint, end_result text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    owner text := delegator.session_id(secret);
begin
    update delegator.tasks t
        set state = end_state, session = null, ended_at = now(), failure_kind = end_failure_kind,
            limit_kind = end_limit_kind, message = end_message, retry_at_ms = end_retry_at_ms, result = end_result,
            stored_bytes = delegator.stored_bytes(t.id) + coalesce(octet_length(end_result), 0)
        where t.id = of_task and t.attempt = of_attempt and t.session = owner and t.state = 'running';
    if not found then
        return exists (select from delegator.attempts a where a.task = of_task and a.attempt = of_attempt
            and a.session = owner and a.outcome = end_state);
    end if;
    update delegator.attempts a set ended_at = now(), outcome = end_state
        where a.task = of_task and a.attempt = of_attempt;
    return true;
end
$$;

-- Locks the open attempt of a session and returns the length of its stream.
create function delegator.lock_attempt(secret text, of_task text, of_attempt integer) returns bigint language sql as $$
    select a.event_bytes from delegator.attempts a where a.task = of_task and a.attempt = of_attempt
        and a.session = delegator.session_id(secret) and a.ended_at is null for update
$$;

-- Returns the end of the stored stream; one before `start` means that bytes are missing, and nothing was stored.
create function delegator.append_events(
    secret text, of_task text, of_attempt integer, start bigint, chunk bytea) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    stored bigint := delegator.lock_attempt(secret, of_task, of_attempt);
begin
    if stored is null or start > stored or start + length(chunk) <= stored then
        return stored;
    end if;
    insert into delegator.event_chunks (task, attempt, byte_offset, bytes)
        values (of_task, of_attempt, stored, substring(chunk from (stored - start)::integer + 1));
    update delegator.attempts a set event_bytes = start + length(chunk)
        where a.task = of_task and a.attempt = of_attempt;
    return start + length(chunk);
end
$$;

-- Replaces a file with other content. Returns the parts that are stored already.
create function delegator.begin_blob(
    secret text, of_task text, of_attempt integer, blob text, blob_size bigint, blob_sha256 bytea) returns integer[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if delegator.lock_attempt(secret, of_task, of_attempt) is null then
        return null;
    end if;
    delete from delegator.blobs b where b.task = of_task and b.attempt = of_attempt and b.name = blob
        and (b.size, b.sha256) <> (blob_size, blob_sha256);
    insert into delegator.blobs (task, attempt, name, size, sha256)
        values (of_task, of_attempt, blob, blob_size, blob_sha256) on conflict do nothing;
    return array(select p.part from delegator.blob_parts p
        where p.task = of_task and p.attempt = of_attempt and p.name = blob);
end
$$;

create function delegator.put_blob_part(
    secret text, of_task text, of_attempt integer, blob text, part_number integer, part_bytes bytea) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if delegator.lock_attempt(secret, of_task, of_attempt) is null then
        return false;
    end if;
    insert into delegator.blob_parts (task, attempt, name, part, bytes)
        select b.task, b.attempt, b.name, part_number, part_bytes from delegator.blobs b
        where b.task = of_task and b.attempt = of_attempt and b.name = blob and not b.is_sealed
        on conflict do nothing;
    return true;
end
$$;

create function delegator.seal_blob(secret text, of_task text, of_attempt integer, blob text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if delegator.lock_attempt(secret, of_task, of_attempt) is null then
        return false;
    end if;
    update delegator.blobs b set is_sealed = true
        where b.task = of_task and b.attempt = of_attempt and b.name = blob
            and b.size = (select coalesce(sum(length(p.bytes)), 0) from delegator.blob_parts p
                where p.task = of_task and p.attempt = of_attempt and p.name = blob);
    if not found then
        raise exception 'the parts of the % do not have the size that was declared', blob;
    end if;
    return true;
end
$$;

-- An empty name is the whole fleet. Returns whether that changed something.
create function delegator.set_pause(worker_name text, is_paused boolean) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if is_paused then
        insert into delegator.pauses (worker) values (worker_name) on conflict do nothing;
    else
        perform pg_notify('delegator', 'sessions');
        delete from delegator.pauses p where p.worker = worker_name;
    end if;
    return found;
end
$$;

-- False if the worker is draining already; null if it is not there.
create function delegator.drain_worker(worker_name text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    found_session delegator.sessions%rowtype;
begin
    select * into found_session from delegator.sessions s where s.worker = worker_name and s.ended_at is null for update;
    update delegator.sessions s set is_draining = true where s.id = found_session.id;
    perform pg_notify('delegator', found_session.id) where found;
    return not found_session.is_draining;
end
$$;

-- False if another worker has pruned lately, or does so now. Also deletes ended sessions to which no task refers; those of
-- the last day stay, so that their workers count as known.
create function delegator.begin_pruning(interval_sec double precision) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update delegator.upkeep set pruned_at = now() where only_row in (
        select only_row from delegator.upkeep
        where pruned_at < now() - make_interval(secs => interval_sec) for update skip locked);
    if not found then
        return false;
    end if;
    delete from delegator.sessions s where s.ended_at < now() - interval '1 day'
        and not exists (select from delegator.tasks t where t.session = s.id);
    return true;
end
$$;

create function delegator.continue_pruning() returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
    update delegator.upkeep set pruned_at = '-infinity'
$$;

create function delegator.delete_ended_tasks(last_end timestamptz, max_tasks bigint) returns bigint
language sql security definer set search_path = pg_catalog, pg_temp as $$
    with deleted as (
        delete from delegator.tasks where id in (
            select id from delegator.tasks where ended_at <= last_end order by ended_at limit max_tasks) returning id)
    select count(*) from deleted
$$;

create function delegator.protect_submission() returns trigger language plpgsql as $$
begin
    if (new.id, new.spec, new.labels) is distinct from (old.id, old.spec, old.labels) then
        raise exception 'id, spec and labels of the task % must not change', old.id;
    end if;
    return new;
end
$$;
create trigger protect_submission before update of id, spec, labels on delegator.tasks
    for each row execute function delegator.protect_submission();

-- What belongs to an ended attempt is only deleted, together with its task.
create function delegator.protect_ended_attempts() returns trigger language plpgsql as $$
declare
    row record := case when tg_op = 'INSERT' then new else old end;
begin
    if exists (select from delegator.attempts a join delegator.tasks t on t.id = a.task
            where a.task = row.task and a.attempt = row.attempt and a.ended_at is not null) then
        raise exception 'the attempt % of the task % has ended and must not change', row.attempt, row.task;
    end if;
    return case when tg_op = 'DELETE' then old else new end;
end
$$;
create trigger protect_ended_attempts before update or delete on delegator.attempts
    for each row execute function delegator.protect_ended_attempts();
create trigger protect_ended_attempts before insert or update or delete on delegator.event_chunks
    for each row execute function delegator.protect_ended_attempts();
create trigger protect_ended_attempts before insert or update or delete on delegator.blobs
    for each row execute function delegator.protect_ended_attempts();
create trigger protect_ended_attempts before insert or update or delete on delegator.blob_parts
    for each row execute function delegator.protect_ended_attempts();

revoke all on all functions in schema delegator from public;
