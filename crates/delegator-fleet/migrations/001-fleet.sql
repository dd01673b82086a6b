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

revoke all on all functions in schema delegator from public;
