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

-- Roles of workers that exist already may call the functions at once. Their rights to tables stay until `fleet grant` is run
-- again, because older workers still need them.
do $$
declare
    right_to_call text;
begin
    for right_to_call in
        select format('grant execute on function %s to %s', f.oid::regprocedure, a.grantee::regrole)
        from pg_catalog.pg_proc p, aclexplode(p.proacl) a, pg_catalog.pg_proc f
        where p.oid = 'delegator.lose_task(text, integer, text, text, text)'::regprocedure
            and a.grantee not in (0, p.proowner)
            and f.pronamespace = 'delegator'::regnamespace and f.prosecdef and f.proname <> 'refuse_task'
    loop
        execute right_to_call;
    end loop;
end
$$;
