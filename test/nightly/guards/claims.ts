import { type Guard, guards } from './guard.ts'

const CLOCK_BACK = 'test/api/maintenance/clock-back.test.ts'
const WENT_BACK = "once the database's clock went back by an hour"
const FIRST_SENT_AHEAD =
  'a refund that was first sent by a clock that was an hour ahead is not sent again'
const DATED_BY_WORKER =
  'a refund may be sent again that the clock of a query of tables would date ahead'
const SENT_AHEAD = 'a refund that was sent by a clock that was an hour ahead'
const GROWTH_SHOWS =
  "the next answer speaks about what came before, although the database's clock has gone back since: growth shows a refund that was sent"

export const CLAIMS: readonly Guard[] = [
  {
    file: 'src/create-context.ts',
    text: 'Math.max(1, total - reserved)',
    mutation: 'Math.max(1, total - 0 * reserved)',
    test: 'test/api/sync/fairness.test.ts',
    claim:
      'a burst of one account leaves the last call slots to others, even when all its calls hang',
    control: 'GATEWAY_RATE_PER_S off, no account is locked or throttled',
  },
  {
    file: 'src/transactions/due.ts',
    text: "least(${addMs(now, 't.gap_ms')}, greatest",
    mutation: 'least(greatest',
    test: CLOCK_BACK,
    claim: `${WENT_BACK} a transaction that is notified is due within the gap of a burst`,
    control: `${WENT_BACK} the calls of an account go on`,
  },
  {
    file: 'src/sync/write-transactions.ts',
    text: "afterGap('clock.at')",
    mutation: "afterGap('t.queried_at')",
    test: CLOCK_BACK,
    claim: `${WENT_BACK} a transaction that is notified during its query is due within the gap of a burst`,
    control: `${WENT_BACK} the calls of an account go on`,
  },
  {
    file: 'src/maintenance/housekeeping.ts',
    text: '(select clock_timestamp() as now)',
    mutation: "(select clock_timestamp() - interval '3 s' as now)",
    test: CLOCK_BACK,
    claim: 'a database that answers late is not one whose clock went back',
    control: `${WENT_BACK} the calls of an account go on`,
  },
  ...guards({ test: 'test/plays/evidence/clock-back.test.ts', control: GROWTH_SHOWS }, [
    {
      file: 'src/maintenance/housekeeping.ts',
      text: "sql`first_sent_at > 'epoch'`",
      mutation: 'sql`first_sent_at > now()`',
      claim: `${FIRST_SENT_AHEAD} also where it was dated before now when the clock went back`,
    },
    {
      file: 'src/maintenance/housekeeping.ts',
      text: 'await forbidResends(ctx, now, hasGoneBack)',
      mutation: 'hasGoneBack ? await forbidResends(ctx, now, hasGoneBack) : 0',
      claim: `${FIRST_SENT_AHEAD} also where no process was seen while the clock was ahead`,
    },
    {
      file: 'src/maintenance/housekeeping.ts',
      text: ' union all select seen_at from installation)',
      mutation: ')',
      claim: `${FIRST_SENT_AHEAD} also where every process was stopped, and one that starts notices it`,
    },
    {
      file: 'src/service.ts',
      text: 'await followClock(ctx)\n    await createServerWatch(ctx)()',
      mutation: 'await createServerWatch(ctx)()\n    await followClock(ctx)',
      claim: `${FIRST_SENT_AHEAD} also where every process was stopped, and one that starts notices it`,
    },
    {
      file: 'src/maintenance/housekeeping.ts',
      text: '(select clock_timestamp() as now)',
      mutation: '(select now() as now)',
      claim: DATED_BY_WORKER,
    },
    {
      file: 'src/maintenance/housekeeping.ts',
      text: "case when status = 'unknown' then clock.at",
      mutation: "case when status = 'unknown' then due_at",
      claim: `${SENT_AHEAD} is queried at once`,
    },
    {
      file: 'src/maintenance/housekeeping.ts',
      text: 'if (count > 0) await recheckTransaction(tx, key)',
      mutation: 'if (count < 0) await recheckTransaction(tx, key)',
      claim: `${SENT_AHEAD} is queried at once`,
    },
    {
      file: 'src/maintenance/housekeeping.ts',
      text: 'await lockTransaction(tx, key)',
      mutation: 'if (refunds < 0) await lockTransaction(tx, key)',
      claim: `${SENT_AHEAD} is locked after its transaction, like anywhere else`,
    },
    {
      file: 'src/maintenance/housekeeping.ts',
      text: "'epoch', updated_at = clock.at",
      mutation: "'epoch', updated_at = updated_at",
      claim: `${SENT_AHEAD} is decided by a person the usual time after that is noticed`,
    },
    {
      file: 'src/decisions/obstacles.ts',
      text: 'Math.max(sinceSentMs ?? 0, sinceUpdatedMs)',
      mutation: 'Math.min(sinceSentMs ?? 0, sinceUpdatedMs)',
      claim: `${SENT_AHEAD} is decided by a person the usual time after that is noticed`,
    },
    {
      file: 'src/decisions/obstacles.ts',
      text: 'Math.max(0, sinceMs)',
      mutation: 'sinceMs',
      claim: `${SENT_AHEAD} waits for a person no longer than usual`,
    },
    {
      file: 'src/refunds/answer.ts',
      text: 'before.firstSentAt === null ? null : draft.now.firstSentAt',
      mutation: 'before.firstSentAt',
      claim: `${FIRST_SENT_AHEAD} also where that is noticed during another attempt, which is not written`,
    },
    {
      file: 'src/refunds/answer.ts',
      text: 'draft.now.firstSentAt ?? recorded.firstSentAt',
      mutation: 'recorded.firstSentAt',
      claim: `${FIRST_SENT_AHEAD} also where that is noticed during another attempt, whose record is lost`,
    },
  ]),
  ...guards({ file: 'src/maintenance/housekeeping.ts', test: CLOCK_BACK }, [
    {
      text: 'paid_until = now() where',
      mutation: 'paid_until = paid_until where',
      claim: `${WENT_BACK} the calls of an account go on`,
      control: `${WENT_BACK} a webhook endpoint gets the next event`,
    },
    {
      text: 'webhook_endpoints set due_at = now() where',
      mutation: 'webhook_endpoints set due_at = due_at where',
      claim: `${WENT_BACK} a webhook endpoint gets the next event`,
      control: `${WENT_BACK} the calls of an account go on`,
    },
    {
      text: 'Math.max(usualMs, claimedForMs)',
      mutation: 'Math.min(usualMs, claimedForMs)',
      claim: `${WENT_BACK} a claim of a process that waits longer for the gateway lasts for its own time`,
      control: `${WENT_BACK} a claim lasts for its usual time from now, even if its process has been seen since`,
    },
    {
      text: 'processes set seen_at = now() where',
      mutation: 'processes set seen_at = seen_at where',
      claim: `${WENT_BACK} a claim of a process that died before is taken over like any other`,
      control: `${WENT_BACK} a claim lasts for its usual time from now, even if its process has been seen since`,
    },
    {
      text: 'set writing_since = now() where',
      mutation: 'set writing_since = writing_since where',
      claim: `${WENT_BACK} a claim of a process that died before is taken over like any other`,
      control: `${WENT_BACK} a claim lasts for its usual time from now, even if its process has been seen since`,
    },
    {
      text: 't.due_at > ${end} and t.queried_at > ${now}::timestamptz and t.lease_id',
      mutation: 't.due_at > least(now(), ${end}) and t.lease_id',
      claim: `${WENT_BACK} what was claimed since, and what nobody has claimed, is due when it was`,
      control: `${WENT_BACK} a claim lasts for its usual time from now, even if its process has been seen since`,
    },
  ]),
  {
    file: 'src/db/processes.ts',
    text: 'seen_at = greatest(p.seen_at, excluded.seen_at)',
    mutation: 'seen_at = excluded.seen_at',
    test: CLOCK_BACK,
    claim: `${WENT_BACK} a claim lasts for its usual time from now, even if its process has been seen since`,
    control: `${WENT_BACK} a claim of a process that died before is taken over like any other`,
  },
  {
    file: 'src/maintenance/housekeeping.ts',
    text: 'update transactions set queried_at = now(), due_at',
    mutation: 'update transactions set lease_id = null, due_at',
    test: 'test/races/unseen-processes.test.ts',
    claim:
      'what a process holds that is not seen any more with a refund that may be sent keeps its lease after the clock went back, until it ends in its usual time',
    control:
      'what a process holds that is not seen any more with a refund that is unknown keeps its lease: true',
  },
  {
    file: 'src/sync/sync-due.ts',
    text: 'const endCommit = hasRefunds ? undefined',
    mutation: "const endCommit = hasRefunds && merchantCode === '' ? undefined",
    test: 'test/api/sync/call-slots.test.ts',
    claim: 'a query keeps its slot for the refund that may follow it',
    control:
      'the next call is made while answers are being committed, within the limit of such commits',
  },
  ...guards({ file: 'src/sync/claim-ahead.ts', test: 'test/api/sync/claim-ahead.test.ts' }, [
    {
      text: '  if (!needsMore(ctx, merchantCode)) return 0\n',
      mutation: '',
      claim:
        'claims ahead of the calls are made several at a time: none while more than half of them wait',
      control: 'claims ahead of the calls wait for a slot, and are queried as calls end',
    },
    {
      text: '  if (config.GATEWAY_RATE_PER_S > 0) return 0\n',
      mutation: '',
      claim:
        'claims ahead of the calls are not made where calls are slow or unknown or fail, nor with a call rate',
      control: 'claims ahead of the calls wait for a slot, and are queried as calls end',
    },
    {
      text: '?? FAST_QUERY_MS) < FAST_QUERY_MS',
      mutation: '?? 0) < FAST_QUERY_MS',
      claim:
        'claims ahead of the calls are not made where calls are slow or unknown or fail, nor with a call rate',
      control: 'claims ahead of the calls wait for a slot, and are queried as calls end',
    },
    {
      text: '  return isKeptOut ? 1 : 0',
      mutation: '  return isKeptOut ? 0 : 0',
      claim:
        'claims ahead of the calls of busy accounts do not keep out one without a call in flight',
      control: 'claims ahead of the calls wait for a slot, and are queried as calls end',
    },
  ]),
  ...guards({ file: 'src/sync/sync-due.ts', test: 'test/api/sync/claim-ahead.test.ts' }, [
    {
      text: '    ctx.queryMs.delete(merchantCode)\n',
      mutation: '',
      claim:
        'claims ahead of the calls are handed back when no slot is free for a second, and none follow until a call has ended fast',
      control: 'claims ahead of the calls wait for a slot, and are queried as calls end',
    },
    {
      text: '  if (lifecycle.stopping.aborted) {',
      mutation: "  if (lifecycle.phase === 'starting' && lifecycle.stopping.aborted) {",
      claim: 'claims ahead of the calls are handed back when the process stops, and not queried',
      control: 'claims ahead of the calls wait for a slot, and are queried as calls end',
    },
  ]),
  {
    file: 'src/platform/concurrency/slots.ts',
    text: 'if (next === undefined || countHeld(holder) < countHeld(next)) next = holder',
    mutation: 'if (next === undefined) next = holder',
    test: 'test/unit/platform/concurrency/slots.test.ts',
    claim:
      'slots go to the waiting holder with the fewest, and to one after the other where they have as many',
    control: 'slots are not waited for longer than a request wants to',
  },
  {
    file: 'src/db/reads.ts',
    text: '{ perHolder: Math.max(1, slots >> 1) }',
    mutation: '{ perHolder: slots }',
    test: 'test/api/db/reads.test.ts',
    claim: 'turns leave one session for another holder, whose turn comes before all that wait',
    control: 'turns are refused to a read that has waited too long, or finds too many',
  },
  ...guards({ file: 'src/sync/claim-due.ts' }, [
    {
      text: '  return 3 * gatewayTimeoutMs + 15_000',
      mutation: '  return gatewayTimeoutMs',
      test: 'test/races/claims.test.ts',
      claim: 'a claim lasts longer than three calls',
      control: 'the loop rests until the next row is due, but at most a second',
    },
    {
      text: '  return rows.map((row) => ({ ...row, knownAt, leaseLeftMs }))',
      mutation:
        '  const leftMs = startTimer(leaseMs(GATEWAY_TIMEOUT_MS + 0 * leaseLeftMs()))\n  return rows.map((row) => ({ ...row, knownAt, leaseLeftMs: leftMs }))',
      test: 'test/races/claims.test.ts',
      claim: 'a claim counts its lease from before its statement, which may have to wait',
      control: 'a claim claims at most `limit` rows, whatever plan Postgres picks',
    },
    {
      text: 'order by rank = 2, turn, due_at limit ${limit}',
      mutation: 'order by rank = 2, due_at limit ${limit}',
      test: 'test/api/sync/fairness.test.ts',
      claim:
        'a burst of one account takes turns with another burst, however many of its calls are in flight',
      control:
        'GATEWAY_RATE_PER_S claims nothing of an account whose permits are used up far ahead, and of the other as before',
    },
    {
      text: 'where turn - held <= most\n',
      mutation: 'where turn - held <= most + 1\n',
      test: 'test/api/sync/unconfirmed-share.test.ts',
      claim: 'unknown ids and others take turns where one permit is free',
      control: 'unknown ids take half of the call slots at most, and give them back',
    },
    {
      text: 'const leadsFrom = isClosed && Math.random() < 0.5 ? 1 : 2',
      mutation: 'const leadsFrom = Math.random() < 2 ? 1 : 2',
      test: 'test/api/sync/unconfirmed-share.test.ts',
      claim:
        'an unknown id does not probe a gateway in place of a known one, which may be all that it answers',
      control: 'unknown ids take half of the call slots at most, and give them back',
    },
    {
      text: '    if (breaker.waitMs() > 0) return []\n',
      mutation: '',
      test: 'test/api/platform/concurrency/circuit-breaker.test.ts',
      claim:
        'queries of a gateway that does not answer are paused: due transactions stay unclaimed, no attempt is used up, and the loop sleeps',
      control:
        'a breaker opens after its number of failures in a row, not when an answer came between them',
    },
  ]),
  ...guards({ file: 'src/sync/fence.ts' }, [
    {
      text: 'as_of is null or as_of < sent.at as newer',
      mutation: 'as_of is null or as_of <> sent.at as newer',
      test: 'test/api/sync/retry.test.ts',
      claim:
        'as_of an answer older than the stored one changes nothing, and is queried again at once',
      control: 'an open answer code 9 is polled, not counted as a failure',
    },
    {
      text: '    select t.lease_id as "leaseId", ${tx.unsafe(ROW)}, as_of is null or as_of < sent.at as newer, sent.at::text as "asOf",\n      least(sent.at, least(now(), clock_timestamp()) - since_sent_ms * interval \'1 millisecond\')::text as "firstAsOf"\n    from (\n      select merchant_code, transaction_id, lease_id, since_sent_ms,\n        claimed_at + sent_after_ms * interval \'1 millisecond\' as at\n      from ${rowSet(tx, \'s\', SENT_COLUMNS, rowsSent)}\n      order by merchant_code, transaction_id\n    ) as sent cross join lateral (\n      select * from transactions as t\n      where t.lease_id = sent.lease_id\n        and ${tx',
      mutation:
        '    select sent.lease_id as "leaseId", ${tx.unsafe(ROW)}, as_of is null or as_of < sent.at as newer, sent.at::text as "asOf",\n      least(sent.at, least(now(), clock_timestamp()) - since_sent_ms * interval \'1 millisecond\')::text as "firstAsOf"\n    from (\n      select merchant_code, transaction_id, lease_id, since_sent_ms,\n        claimed_at + sent_after_ms * interval \'1 millisecond\' as at\n      from ${rowSet(tx, \'s\', SENT_COLUMNS, rowsSent)}\n      order by merchant_code, transaction_id\n    ) as sent cross join lateral (\n      select * from transactions as t\n      where ${tx',
      test: 'test/races/claims.test.ts',
      claim:
        'the fence an expired lease is taken over, and the answer of its old owner is not written',
      control: 'the fence a worker that lost the lease cannot release it',
    },
    {
      text: "        claimed_at + sent_after_ms * interval '1 millisecond' as at",
      mutation: "        clock_timestamp() + 0 * sent_after_ms * interval '1 millisecond' as at",
      test: 'test/api/sync/retry.test.ts',
      claim: 'as_of is when the query was sent, not when its answer came',
      control: 'a failed query unavailable (connection refused) is counted like the others',
    },
  ]),
  {
    file: 'src/sync/schedule.ts',
    text: '  if (step.attempts >= settings.SYNC_MAX_ATTEMPTS && !unconfirmed)',
    mutation: '  if (step.attempts > settings.SYNC_MAX_ATTEMPTS && !unconfirmed)',
    test: 'test/api/sync/retry.test.ts',
    claim:
      'after SYNC_MAX_ATTEMPTS failures a transaction is abandoned with a line in the log that calls nobody, whose hint can be followed, and shown in its sync status',
    control: 'an open answer code 9 is polled, not counted as a failure',
  },
  {
    file: 'src/sync/apply-answers.ts',
    text: "if (!row.newer || call.outcome.kind !== 'answered') {",
    mutation: "if (call.outcome.kind !== 'answered') {",
    test: 'test/plays/attempt/lease.test.ts',
    claim:
      'a snapshot older than the stored one is dropped, changes and sends nothing, and the transaction is due at once',
    control:
      'a lease that would end before the call is too short to send: no attempt is recorded, and the refund waits',
  },
  {
    file: 'src/sync/claim-due.ts',
    text: 'limit ${most} for update skip locked) as locked',
    mutation: 'limit ${most} for update) as locked',
    test: 'test/races/claims.test.ts',
    claim: 'a claim skips rows that another process is claiming, without waiting for it',
    control: 'a claim lasts longer than three calls',
  },
  {
    file: 'src/sync/claim-due.ts',
    text: "greatest(clock_timestamp(), as_of + interval '1 microsecond')::text",
    mutation: 'greatest(clock_timestamp(), now())::text',
    test: 'test/api/sync/retry.test.ts',
    claim:
      'as_of ahead of the clock, after a failover to a slower one: the next answer is stored all the same',
    control: 'as_of is when the query was sent, not when its answer came',
  },
  {
    file: 'src/sync/fence.ts',
    text: '      order by merchant_code, transaction_id\n    ) as sent',
    mutation: '      order by merchant_code, transaction_id desc\n    ) as sent',
    test: 'test/races/claims.test.ts',
    claim:
      'the fence locks transactions in the order of their keys, so that two commits never deadlock',
    control: 'the fence a worker that lost the lease cannot release it',
  },
  {
    file: 'src/sync/claim-due.ts',
    text: 'lease_owner = ${ctx.lifecycle.processId}, claimed = want',
    mutation: 'claimed = want',
    test: 'test/races/unseen-processes.test.ts',
    claim:
      'what a process holds that is not seen any more is due at once, and the answer of the process, which was only paused, is not written',
    control:
      'what a process holds that is not seen any more stays as it is if the process is not known',
  },
  ...guards({ file: 'src/maintenance/processes.ts', test: 'test/races/unseen-processes.test.ts' }, [
    {
      text: "where status in ('awaiting_approval', 'pending', 'sending', 'unknown'))",
      mutation: "where status in ('awaiting_approval', 'pending', 'unknown'))",
      claim:
        'what a process holds that is not seen any more with a refund that is sending keeps its lease: true',
      control:
        'what a process holds that is not seen any more with a refund that is unknown keeps its lease: true',
    },
    {
      text: 'order by t.due_at for update skip locked) as t',
      mutation: 'order by t.due_at for update) as t',
      claim:
        'what a process holds that is not seen any more is skipped without waiting while a commit of it is not done, and kept if that recorded an attempt',
      control:
        'what a process holds that is not seen any more with a refund that is unknown keeps its lease: true',
    },
    {
      text: ' and own.seen_at > now() - ${ms(WRITE_GAP_MS)}',
      mutation: ' and own.seen_at > now() - 10 * ${ms(WRITE_GAP_MS)}',
      claim:
        'what a process holds that is not seen any more stays as it is for another process that has not been able to write for 7 s: the database may take no writes',
      control:
        'what a process holds that is not seen any more stays as it is for another process that has only been able to write for 11 s: the database may take no writes',
    },
    {
      text: 'and own.writing_since <= now() - ${ms(UNSEEN_MS)}',
      mutation: 'and own.writing_since <= now() - 0 * ${ms(UNSEEN_MS)}',
      claim:
        'what a process holds that is not seen any more stays as it is for another process that has only been able to write for 11 s: the database may take no writes',
      control:
        'what a process holds that is not seen any more stays as it is for another process that has not been able to write for 7 s: the database may take no writes',
    },
    {
      text: 'where dead.seen_at < now() - ${ms(UNSEEN_MS)}',
      mutation: 'where dead.seen_at < now() - 0.5 * ${ms(UNSEEN_MS)}',
      claim:
        'what a process holds that is not seen any more stays as it is if the process was seen within 12 s',
      control:
        'what a process holds that is not seen any more stays as it is if the process is not known',
    },
    {
      text: 'seenAt = Math.max(seenAt, now - Math.max(0, worker))',
      mutation: 'seenAt = now - Math.max(0, worker)',
      claim:
        'a process that only serves HTTP does not say so when the only worker stops, but 30 s after it saw it',
      control:
        'a process that only serves HTTP says once that it has seen no worker for 30 s, and that it sees one again',
    },
  ]),
  {
    file: 'src/sync/claim-due.ts',
    text: '[row_number() over ()] as lease_id',
    mutation: '[1 + row_number() over ()] as lease_id',
    test: 'test/api/sync/fairness.test.ts',
    claim:
      'a burst of one account takes turns with another burst, however many of its calls are in flight',
    control: 'GATEWAY_RATE_PER_S off, no account is locked or throttled',
  },
  {
    file: 'src/db/processes.ts',
    text: 'when excluded.seen_at - p.seen_at >',
    mutation: 'when p.seen_at - excluded.seen_at >',
    test: 'test/races/unseen-processes.test.ts',
    claim:
      'a process writes that it lives, and since when it could: without a gap as long as two writes',
    control: 'a process is known from its start until it stops',
  },
  {
    file: 'src/db/processes.ts',
    text: 'max(writing_since) filter',
    mutation: 'max(started_at) filter',
    test: 'test/races/unseen-processes.test.ts',
    claim:
      'a process that only serves HTTP neither says so nor takes it back when no process could write for 30 s',
    control:
      'a process that only serves HTTP says once that it has seen no worker for 30 s, and that it sees one again',
  },
]
