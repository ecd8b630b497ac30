import { type Guard, guards } from './guard.ts'

const DELIVERY = 'test/api/webhooks/delivery.test.ts'
const OUTAGE = 'test/api/webhooks/outage.test.ts'
const OWNERS = 'test/api/webhooks/owners.test.ts'
const CONDITIONS = 'test/api/webhooks/conditions.test.ts'
const CHANGES = 'test/api/webhooks/changes.test.ts'
const RACES = 'test/races/webhooks.test.ts'

const ANY_SEQUENCE =
  'whatever is accepted, refused or lost, with two workers that lose their leases: nothing is lost, each transaction is in order, the cursor never goes back'

const VERIFIED =
  "an endpoint gets the event, which the library's own verifier accepts, and no other header of ours"

const AT_NEW_ADDRESS =
  'a changed endpoint gets what waited at its new address at once, and keeps its secret'
const VERSION =
  'the version of events is in every event, and an endpoint keeps the one that it was registered with'
const UNWRITABLE =
  'an event that cannot be written fails alone: the endpoint gets the events of other transactions, does not fail, and names it'

export const WEBHOOKS: readonly Guard[] = [
  {
    file: 'src/events/event.ts',
    text: '  if (!object) return data\n',
    mutation:
      "  if (!object && data.includes(SEALED_MEMBER)) throw new DomainError('unavailable', data)\n  if (!object) return data\n",
    test: 'test/api/refunds/request/metadata.test.ts',
    claim:
      'the names of members of events are names like others, in the feed too, with and without a receiver',
    control: 'the pairs of a request are kept, and shown wherever the refund is',
  },
  {
    file: 'src/events/event.ts',
    text: '  if (!object) return undefined\n',
    mutation: '  if (!object) return data.includes(SEALED_MEMBER) ? null : undefined\n',
    test: 'test/api/data-keys/reseal.test.ts',
    claim: 'an event whose metadata has the names of our own members needs nothing',
    control: 'the receivers in events are delivered as before',
  },
  ...guards({ file: 'src/webhooks/deliver.ts', test: DELIVERY, control: VERIFIED }, [
    {
      text: '    if (err instanceof DomainError) throw err\n',
      mutation: '    if (err instanceof DomainError || err instanceof Error) throw err\n',
      claim: UNWRITABLE,
    },
  ]),
  ...guards({ file: 'src/webhooks/claim.ts', test: DELIVERY, control: VERIFIED }, [
    {
      text: 'calls.some(({ sent }) => sent !== UNWRITABLE)',
      mutation: 'calls.some(({ sent }) => sent !== UNWRITABLE || sent.error !== null)',
      claim: UNWRITABLE,
    },
    {
      text: '  return sql`r.event_id = (\n',
      mutation: '  return sql`r.event_id >= (\n',
      claim:
        'the order of one transaction holds while its first event is refused, and other transactions continue',
    },
    {
      text: ' where id = ${claim.id} and lease_id = ${claim.leaseId} for no key update',
      mutation: ' where id = ${claim.id} and ${claim.leaseId}::uuid is not null for no key update',
      claim:
        'a claim that lost its lease writes nothing, whatever came back, and the event is sent again under its id',
    },
    {
      text: '    if (!row) return { value: undefined }\n',
      mutation:
        '    if (!row) return { value: undefined, last: () => endRetries(tx, claim, [...accepted, ...dropped]) }\n',
      claim:
        'a claim that lost its lease leaves the retry that it sent, although that was accepted',
    },
  ]),
  {
    file: 'src/webhooks/claim.ts',
    text: '    // The event of the change shows what is left.\n    await end()\n',
    mutation: '    if (isChanged === undefined) await end()\n',
    test: 'test/api/webhooks/conditions.test.ts',
    claim:
      'the condition of an endpoint is an event in the feed and at the other endpoints, when it fails and when it recovers',
    control: VERSION,
  },
  ...guards({ file: 'src/webhooks/claim.ts', test: OUTAGE }, [
    {
      text: 'where e.disabled_at is null and e.due_at <= now() and (e.failing',
      mutation: 'where e.disabled_at is null and (e.failing',
      claim:
        'a failing endpoint is probed by one process only, at intervals that grow with the outage, up to a minute',
      control:
        'an endpoint is disabled by a failure five days after the first since its last success, and not before',
    },
    {
      text: '  const isGone = calls.some(({ sent }) => sent.status === 410)',
      mutation: '  const isGone = calls.some(({ sent }) => sent.status === 411)',
      claim:
        'an endpoint is disabled by a 410 at once: nothing more is sent or fanned out until it is enabled and continues in order',
      control:
        'an endpoint is disabled by a failure five days after the first since its last success, and not before',
    },
  ]),
  ...guards({ file: 'src/webhooks/claim.ts', test: DELIVERY, control: VERIFIED }, [
    {
      text: 'const DELAYS_S = [5, 30,',
      mutation: 'const DELAYS_S = [5, 5,',
      claim:
        'an endpoint that fails for a while gets the same event, under the same id, by the retry schedule',
    },
  ]),
  {
    file: 'src/webhooks/claim.ts',
    text: '        ahead = ${writeIds(wave.ahead)}::bigint[],',
    mutation: '        ahead = ${writeIds(wave.ahead.slice(0, 0))}::bigint[],',
    test: RACES,
    claim: ANY_SEQUENCE,
    control: 'two workers never have more than four calls to an endpoint in flight',
  },
  {
    file: 'src/webhooks/plan.ts',
    text: '  const cursor = open < 0 ? page.next : (before.at(-1)?.id ?? claim.cursor)',
    mutation: '  const cursor = open < 0 ? page.next : (after.at(-1)?.id ?? claim.cursor)',
    test: RACES,
    claim: ANY_SEQUENCE,
    control: 'two workers send one event once',
  },
  ...guards({ file: 'src/webhooks/plan.ts', test: CHANGES, control: AT_NEW_ADDRESS }, [
    {
      text: '[...claim.ahead, ...ahead]',
      mutation: 'ahead',
      claim:
        'a changed endpoint is not sent again what it has accepted before an event that it gets now',
    },
  ]),
  {
    file: 'src/webhooks/plan.ts',
    text: '  const due = retries.filter((retry) => isWanted(retry, filter))',
    mutation:
      '  const due = retries.filter((retry) => isWanted(retry, filter) || retry.attempts > 0)',
    test: OWNERS,
    claim:
      'a key that loses a scope gets no refund events any more, neither new ones nor those that wait',
    control:
      'a key for webhooks alone can neither repeat, list, test nor enable what it may not read',
  },
  ...guards({ file: 'src/webhooks/plan.ts', test: CONDITIONS, control: VERSION }, [
    {
      text: '  return ahead.includes(event.id) || event.transactionId === id',
      mutation: '  return ahead.includes(event.id) || event.transactionId === `${id} `',
      claim:
        'the condition of an endpoint is an event in the feed and at the other endpoints, when it fails and when it recovers',
    },
  ]),
  ...guards({ file: 'src/webhooks/deliver.ts', test: DELIVERY, control: VERIFIED }, [
    {
      text: '  const [askedAt, leftMs] = [performance.now(), startTimer(LEASE_MS)]\n  const claims = await claimEndpoints(ctx, isFailing, limit)\n',
      mutation:
        '  const claims = await claimEndpoints(ctx, isFailing, limit)\n  const [askedAt, leftMs] = [performance.now(), startTimer(LEASE_MS)]\n',
      claim: 'a claim that took until its lease had nearly expired is not sent',
    },
    {
      text: 'failing.map(({ claim }) => releaseClaim(ctx, claim))',
      mutation: 'failing.slice(0, 0).map(({ claim }) => releaseClaim(ctx, claim))',
      claim: 'a claim of failing endpoints is given back when that of the others fails',
    },
    {
      text: 'leftMs() < 2 * CALL_MS',
      mutation: 'leftMs() < -40 * CALL_MS',
      claim: 'a claim that stalled until its lease had nearly expired is not sent',
    },
    {
      text: '  const at = new Date(lease.claimedAt + performance.now() - lease.askedAt)',
      mutation: '  const at = ctx.now()',
      claim: 'an endpoint gets database time, however wrong the clock of the sending process is',
    },
  ]),
  {
    file: 'src/webhooks/deliver.ts',
    text: 'calls.free() > 0 &&',
    mutation: 'calls.free() + more.length > 0 &&',
    test: OUTAGE,
    claim: 'endpoints that answer slowly and have much to get take turns with the others',
    control: 'calls are shared: each of many endpoints gets one at once, although all of them hang',
  },
  {
    file: 'src/webhooks/deliver.ts',
    text: 'const MAX_PROBES = 16',
    mutation: 'const MAX_PROBES = 32',
    test: OUTAGE,
    claim: 'failing endpoints get a limited share of the calls in flight, however many they are',
    control: 'calls are shared: each of many endpoints gets one at once, although all of them hang',
  },
  {
    file: 'src/webhooks/deliver.ts',
    text: 'serializeEvent(encryption, event, apiVersion)',
    mutation: 'serializeEvent(encryption, event, apiVersion && undefined)',
    test: CONDITIONS,
    claim: VERSION,
    control:
      'the condition of an endpoint is an event when it is disabled, by a 410 or with its key, and when it is enabled again',
  },
  ...guards({ file: 'src/webhooks/endpoints.ts', test: OWNERS }, [
    {
      text: '  const own = covers(merchantCode) ? [merchantCode] : []\n  const ofAll = merchants.includes(EVERY_MERCHANT) ? undefined : merchants\n',
      mutation:
        '  const own = covers(merchantCode) ? [merchantCode] : []\n  const ofAll = merchants.length > 0 ? undefined : merchants\n',
      claim: 'an endpoint whose key ends of a person ends with the access of the person',
      control:
        'an endpoint whose key ends belongs to whoever gives it other types, so that the owner may read what it gets',
    },
    {
      text: 'own.ended_at is null\n      and (own.expires_at is null or own.expires_at > now())\n',
      mutation: 'own.ended_at is null\n',
      claim:
        'an endpoint whose key ends gets nothing more once the key expires: no new event, none that waits',
      control:
        'a key for webhooks alone can neither repeat, list, test nor enable what it may not read',
    },
  ]),
  ...guards({ file: 'src/webhooks/changes.ts', test: CHANGES, control: AT_NEW_ADDRESS }, [
    {
      text: 'case when e.lease_owner is null then clock.at else e.due_at end',
      mutation: 'clock.at',
      claim:
        'a changed endpoint gets nothing while a call to its old address is under way, and then everything at the new one',
    },
    {
      text: '    if (error instanceof DomainError) throw error\n    return undefined\n',
      mutation: '    throw error\n',
      claim:
        'a rotated secret takes the place of one that cannot be opened any more, and what waits is sent',
    },
  ]),
  ...guards({ file: 'src/webhooks/replay.ts', test: OUTAGE }, [
    {
      text: '        ahead = array(select id from unnest(ahead) as id where id <= ${start}::bigint order by id)\n      where id = ${request.id}`\n    await tx`\n      delete from webhook_retries where endpoint_id = ${request.id} and event_id > ${start}::bigint`',
      mutation:
        '        ahead = array(select id from unnest(ahead) as id where id <= ${start}::bigint order by id)\n      where id = ${request.id}`',
      claim:
        'a replay repeats everything after an event, in order, and duplicates no pending delivery',
      control:
        'a replay leaves no newer delivery in front of what it repeats: those in flight are sent again in order',
    },
    {
      text: '  if (after === 0) return start\n',
      mutation: '  if (after < 0) return start\n',
      claim:
        'a replay from 0 begins with the oldest event that is kept, and an older event is refused with that advice',
      control:
        'a replay repeats everything after an event, in order, and duplicates no pending delivery',
    },
  ]),
  {
    file: 'src/webhooks/log.ts',
    text: '    where e.id = ${sql(alias)}.event_id and e.merchant_code = ${merchantCode} and ${isReadable})`',
    mutation:
      '    where e.id = ${sql(alias)}.event_id and e.merchant_code >= ${merchantCode.slice(0, 0)} and ${isReadable})`',
    test: 'test/console/story/story.test.ts',
    claim:
      'beside the payments stand the webhooks that were sent for it, of its own account only, with their results',
    control: 'the story of a refunded payment shows the payment with what is left',
  },
  {
    file: 'src/webhooks/deliver.ts',
    text: '  if (cursor >= removed || (first && first.id <= removed)) return\n',
    mutation: '  if (cursor >= 0 || removed < 0 || first) return\n',
    test: DELIVERY,
    claim:
      'an endpoint whose next event was deleted goes on with the oldest that is kept, which is logged and counted once',
    control: 'publishing wakes the delivery; polling is the fallback',
  },
  {
    file: 'src/webhooks/replay.ts',
    text: 'const TEST_RATE = { perMinute: 20, burst: 20 }',
    mutation: 'const TEST_RATE = { perMinute: 20, burst: 2_000 }',
    test: 'test/api/webhooks/routes.test.ts',
    claim: 'a test event is one of some twenty a minute of its account',
    control: 'a test event is refused while too many are in progress',
  },
]
