import { type Guard, guards } from './guard.ts'

const TEST = 'test/api/maintenance/restored.test.ts'
const STOPS = 'a server that is not the one of before'
const LOST = 'while commits may have been lost'
const UNNOTICED = `${LOST} no refund is sent and no event published, before anything has noticed it`
const NOTICED = `${LOST} no refund is sent and no event published, once it is noticed`
const IS_SAME = `${STOPS} and is the same: stops sending or not`
const TRUSTED = 'a standby that was trusted'
const LACKS = `${TRUSTED} by a process that had seen less, and lacks what another saw: stops sending or not`
const UNCOMPARED = `${TRUSTED} gets nothing to send until the others have had the time to compare it, whatever the clock does then`
const WAITING = `${TRUSTED} gets nothing to send while the commit of that trust waits for a standby, however long`
const BY_COMMAND =
  'the command line leaves for the next start what shows that the clock went back: when a process saw the database'
const BESIDE =
  'a second loss while nothing is sent is said beside the first, and the confirmation names both'
const MEANWHILE = 'a second loss during a confirmation is not confirmed with the first'

export const RESTORES: readonly Guard[] = [
  ...guards({ file: 'src/db/installation.ts', test: TEST, control: IS_SAME }, [
    {
      text: 'i.stopped_at is null and i.system_identifier = server.system_identifier and i.timeline = server.timeline',
      mutation: 'i.stopped_at is null and i.system_identifier = server.system_identifier',
      claim: UNNOTICED,
    },
    {
      text: "${open?.newest ?? null}::timestamptz + interval '1 microsecond')",
      mutation: "${open?.newest ?? null}::timestamptz - interval '1 day')",
      claim:
        'a restore that is confirmed leaves to a person also what was asked for at a server whose clock was ahead',
    },
    {
      text: 'where i.stopped_at is null and i.system_identifier',
      mutation: 'where i.system_identifier',
      claim: NOTICED,
    },
    {
      text: 'if (server.systemIdentifier !== before.systemIdentifier) {',
      mutation: 'if (server.systemIdentifier !== before.systemIdentifier && !before.hasStandby) {',
      claim: `${STOPS} with another identifier, although it had a standby: stops sending or not`,
    },
  ]),
  ...guards({ file: 'src/db/installation.ts', test: TEST }, [
    {
      text: 'if (before.hasStandby && hasAll) return undefined',
      mutation: 'if (before.hasStandby && !hasAll) return undefined',
      claim: `${STOPS} on another timeline, taken over by a synchronous standby: stops sending or not`,
      control: `${STOPS} with another identifier: stops sending or not`,
    },
    {
      text: '(knows && seenAt !== undefined) || before.isRecent',
      mutation: '(knows && seenAt !== undefined) || before.seenAt > 0',
      claim: `${STOPS} on another timeline, with a standby once, as an old backup says: stops sending or not`,
      control: IS_SAME,
    },
    {
      text: '(seenAt === undefined || had >= seenAt)',
      mutation: '(seenAt === undefined || before.isRecent || had >= seenAt)',
      claim:
        'a process that goes on believes a standby that was left behind a moment before, however long the promotion took',
      control: IS_SAME,
    },
    {
      text: 'floor(extract(epoch from i.stopped_at)), case',
      mutation: 'null::int, case',
      claim: `${LOST} no ETag of before is a 304, and none of meanwhile is one afterwards`,
      control: 'restored says when nothing was stopped, and refuses what it does not know',
    },
    {
      text: 'case when i.timeline <> now.timeline then now.timeline end)',
      mutation: 'case when i.timeline < 0 then now.timeline end)',
      claim: `${LOST} no ETag of before is a 304 on another timeline, before anything has noticed it`,
      control: 'restored says when nothing was stopped, and refuses what it does not know',
    },
    {
      text: 'insert into event_removals (removed_up_to) values (${start})',
      mutation: 'insert into event_removals (removed_up_to) values (${start - start})',
      claim: `${LOST} a cursor that the feed does not know is refused for now, and is 410 when the restore is confirmed`,
      control: 'restored says when nothing was stopped, and refuses what it does not know',
    },
    {
      text: 'select setval(s.name,',
      mutation: 'select (',
      claim:
        'restored holds what was not sent for a person, asks the gateway about what is open, and raises the epoch',
      control: 'restored says when nothing was stopped, and refuses what it does not know',
    },
  ]),
  ...guards({ file: 'src/db/installation.ts', test: TEST, control: IS_SAME }, [
    {
      text: 'extract(epoch from clock_timestamp())::bigint - ${EPOCHS_FROM_S} as epoch',
      mutation:
        'extract(epoch from clock_timestamp())::bigint - 2 * ${EPOCHS_FROM_S}::bigint as epoch',
      claim:
        'restored repeats no event id, cursor or ETag of a restore that the restored backup does not know',
    },
    {
      text: 'nextval(s.name) + ${POSITIONS_PER_S})) as start',
      mutation: '0)) as start',
      claim:
        'restored continues behind every event, however far ahead the clock of the one before was',
    },
    {
      text: "between clock_timestamp() - interval '15 s'",
      mutation: "between clock_timestamp() - interval '5 s'",
      claim: UNCOMPARED,
    },
    {
      text: "and clock_timestamp() + interval '2 s') is not true",
      mutation: 'and clock_timestamp()) is not true',
      claim: UNCOMPARED,
    },
    {
      text: "i.trusted_at in ('infinity', i.seen_at) or",
      mutation: 'i.trusted_at = i.seen_at or',
      claim: WAITING,
    },
    {
      text: "i.trusted_at in ('infinity', i.seen_at) or",
      mutation: "i.trusted_at = 'infinity' or",
      claim: UNCOMPARED,
    },
    {
      text: "then trusted_at else 'infinity' end",
      mutation: 'then trusted_at else clock.at end',
      claim: WAITING,
    },
    {
      text: "i.trusted_at = 'infinity' then clock.at else",
      mutation: "i.trusted_at = 'infinity' then i.trusted_at else",
      claim: UNCOMPARED,
    },
    {
      text: '(knows && seenAt !== undefined)',
      mutation: '(seenAt !== undefined)',
      claim: `${TRUSTED} is not trusted by a process that missed a takeover, if nobody has seen the one before lately`,
    },
    {
      text: 'if (!sighting) return known.stop ?? undefined',
      mutation:
        'if (!sighting) return (await noteSeen(sql, known)) === 0 ? undefined : (known.stop ?? undefined)',
      claim: `${BY_COMMAND} of this server`,
    },
    {
      text: 'seen_at = greatest(seen_at, clock.at)',
      mutation: 'seen_at = clock.at',
      claim: `${BY_COMMAND} of another one`,
    },
    {
      text: 'if (known && isSame(known) && explainLoss(known, sighting ?? NEVER) === undefined) {',
      mutation: 'if (known && isSame(known)) {',
      claim: LACKS,
    },
    {
      text: '(before.trustedSeenAt ?? seenAt) >= seenAt) return undefined',
      mutation: '(before.trustedSeenAt ?? seenAt) > 0) return undefined',
      claim: LACKS,
    },
    {
      text: 'set stopped_at = clock.at, trusted_at = null, trusted_seen_at = null,',
      mutation: 'set stopped_at = clock.at,',
      claim: LACKS,
    },
    {
      text: '{ timeline, seenAt, isTrusted: trustedSeenAt !== null })',
      mutation:
        '{ timeline, seenAt: sighting.seenAt, isTrusted: trustedSeenAt !== null && seenAt > 0 })',
      claim:
        'a standby that was trusted is compared with what was visible, even if no standby had it',
    },
    {
      text: 'and i.timeline = $1',
      mutation: 'and (i.timeline = $1 or true)',
      claim: `${TRUSTED} is not taken for the server of before if it takes over while that is looked at`,
    },
    {
      text: 'const because = explainLoss(row, sighting ?? NEVER)',
      mutation: 'const because = row.stop ? undefined : explainLoss(row, sighting ?? NEVER)',
      claim: BESIDE,
    },
    {
      text: "coalesce(stopped_because || ', and then ', '') || ${because}::text",
      mutation: '${because}::text',
      claim: BESIDE,
    },
    {
      text: 'set stopped_at = clock.at,',
      mutation: 'set stopped_at = coalesce(stopped_at, clock.at),',
      claim: MEANWHILE,
    },
    {
      text: '${since}::text::timestamptz',
      mutation: '${since}::timestamptz',
      claim:
        'a second loss is told from the first to the microsecond, also by a session that reads times as dates',
    },
    {
      text: 'knows ? before.seenAt :',
      mutation: 'seenAt !== undefined ? before.seenAt :',
      claim: `${TRUSTED} is not trusted by a process that missed a takeover, if the one before lacked what it saw`,
    },
    {
      text: 'where stopped_at = ${since}::text::timestamptz',
      mutation: 'where stopped_at >= ${since}::text::timestamptz',
      claim: MEANWHILE,
    },
  ]),
  ...guards({ test: TEST, control: IS_SAME }, [
    {
      file: 'src/cli/migrate.ts',
      text: ', which they were not since ${stop.since} because ${stop.because}`',
      mutation: ', which they were not since ${stop.since}`',
      claim: BESIDE,
    },
    {
      file: 'src/refunds/attempt.ts',
      text: '(select ${tx.unsafe(MAY_SEND_SQL)} as may)',
      mutation: '(select (${tx.unsafe(MAY_SEND_SQL)} or true) as may)',
      claim: NOTICED,
    },
    {
      file: 'src/refunds/choose.ts',
      text: 'if (draft.now.requestedBeforeRestore) reviewForgotten(draft, callId)',
      mutation:
        'if (draft.now.requestedBeforeRestore && draft.now.attempts > 0) reviewForgotten(draft, callId)',
      claim:
        'restored leaves a refund to a person whose payment shows growth that may be its own, forgotten with its row',
    },
    {
      file: 'src/feed/publish-events.ts',
      text: 'select ${sql.unsafe(MAY_SEND_SQL)} as may',
      mutation: 'select (${sql.unsafe(MAY_SEND_SQL)} or true) as may',
      claim: NOTICED,
    },
    {
      file: 'src/feed/read-feed.ts',
      text: 'if (isStopped)',
      mutation: 'if (isStopped && after < 0)',
      claim: `${LOST} a cursor that the feed does not know is refused for now, and is 410 when the restore is confirmed`,
    },
    {
      file: 'src/webhooks/deliver.ts',
      text: 'if (!(await maySend(ctx.db.sql))) return',
      mutation: 'if (!(await maySend(ctx.db.sql)) && onMore === null) return',
      claim: `${LOST} no webhook is sent, and all that the feed has is sent afterwards`,
    },
  ]),
  ...guards({ file: 'src/maintenance/restore.ts', test: TEST, control: IS_SAME }, [
    {
      text: "const UNSENT = listStatusesSql('unsent')",
      mutation: "const UNSENT = listStatusesSql('awaited')",
      claim:
        'restored holds what was not sent for a person, asks the gateway about what is open, and raises the epoch',
    },
    {
      text: 'const asked = await askAboutOpen(sql)',
      mutation: 'const asked = (await sql`select ${askAboutOpen.name}::text`).count',
      claim:
        'restored holds what was not sent for a person, asks the gateway about what is open, and raises the epoch',
    },
    {
      text: 'if (stop && throttle(stop.since)) log.error(',
      mutation: 'if (stop && throttle(stop.since)) log.info(',
      claim: `${LOST} a line of the log and /readyz name the command, and the log once a minute at most`,
    },
  ]),
  {
    file: 'src/access/listing.ts',
    text: 'if (of === String(epoch)) return position',
    mutation: "if (of !== '' || of === String(epoch)) return position",
    test: 'test/api/every-list.test.ts',
    claim: 'GET /v1/refunds a cursor from before a restore is refused: the list is read anew',
    control: "GET /v1/refunds holds its own entries and none of the other's",
  },
  ...guards({ test: 'test/api/maintenance/restored.test.ts' }, [
    {
      file: 'src/maintenance/restore.ts',
      text: '${ctx.db.sql.unsafe(UNSENT)} and not exists (',
      mutation: '${ctx.db.sql.unsafe(UNSENT)} and hold is null and not exists (',
      claim:
        'a restore that is confirmed holds anew what is held, so that whoever asked for it does not release it',
      control: 'a server that is not the one of before and is the same: stops sending or not',
    },
    {
      file: 'src/maintenance/restore.ts',
      text: '  const epoch = await runInTransaction(sql, raiseEpoch)\n  const held = await holdUnsent(ctx, actor)\n',
      mutation:
        '  const held = await holdUnsent(ctx, actor)\n  const epoch = await runInTransaction(sql, raiseEpoch)\n',
      claim: 'a restore that is confirmed holds also what is asked for until the epoch is raised',
      control: 'a server that is not the one of before and is the same: stops sending or not',
    },
    {
      file: 'src/refunds/match.ts',
      text: "if (draft.now.requestedBeforeRestore && draft.now.status !== 'accepted') {",
      mutation: "if (draft.now.requestedBeforeRestore && draft.now.status === 'failed') {",
      claim:
        'a restore that is confirmed leaves a refund with an unknown outcome to a person where growth may be its own',
      control: 'a server that is not the one of before and is the same: stops sending or not',
    },
    {
      file: 'src/refunds/measure.ts',
      text: 'if (row.requestedBeforeRestore) return FORGOTTEN',
      mutation: "if (row.requestedBeforeRestore && row.amount === '') return FORGOTTEN",
      claim:
        'a restore that is confirmed fails nothing whose time is over, neither before nor after it is confirmed',
      control: 'a server that is not the one of before and is the same: stops sending or not',
    },
    {
      file: 'src/refunds/lock-refunds.ts',
      text: "case when stopped_at is null then restored_at else 'infinity' end",
      mutation: 'case when true then restored_at end',
      claim:
        'a restore that is confirmed fails nothing whose time is over, neither before nor after it is confirmed',
      control: 'a server that is not the one of before and is the same: stops sending or not',
    },
  ]),
  ...guards({ test: 'test/plays/evidence/late-news.test.ts' }, [
    {
      file: 'src/decisions/obstacles.ts',
      text: "return forgotten && asked && !alone ? { why: 'asked' } : undefined",
      mutation: "return forgotten && asked && alone ? { why: 'asked' } : undefined",
      claim:
        'what a restore may have forgotten is not cancelled by whoever asked for it, who could ask again',
      control: 'a restore that is repeated keeps the reason of before once',
    },
    {
      file: 'src/refunds/choose.ts',
      text: 'if (draft.now.requestedBeforeRestore) {',
      mutation: "if (draft.now.requestedBeforeRestore && failureReason === '') {",
      claim:
        'a refund that a restore may have forgotten fails at no check, and is left to a person',
      control: 'a restore that is repeated keeps the reason of before once',
    },
    {
      file: 'src/refunds/notifications.ts',
      text: "if (now.requestedBeforeRestore) return '",
      mutation: "if (now.requestedBeforeRestore && now.attempts > 9) return '",
      claim:
        'a failure that is notified after a restore, which may have forgotten an attempt, is left to a person',
      control: 'a restore that is repeated keeps the reason of before once',
    },
    {
      file: 'src/refunds/deadlines.ts',
      text: 'if (isFinal && !requestedBeforeRestore) {',
      mutation: 'if (isFinal && !(requestedBeforeRestore && waitMs < 0)) {',
      claim:
        'a refusal of what was asked for before a restore, which may have forgotten an attempt, is left to a person',
      control: 'a restore that is repeated keeps the reason of before once',
    },
  ]),
]
