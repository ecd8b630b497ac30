import type { Guard } from './guard.ts'

export const WEBHOOKS: readonly Guard[] = [
  {
    file: 'src/webhooks/claim-deliveries.ts',
    text: '          and d.event_id = (select event_id from webhook_deliveries as own',
    mutation: '          and d.event_id >= (select event_id from webhook_deliveries as own',
    test: 'test/api/webhooks/delivery.test.ts',
    claim:
      'the order of one transaction holds while its first event is refused, and other transactions continue',
    control: 'an endpoint gets database time, however wrong the clock of the sending process is',
  },
  {
    file: 'src/webhooks/claim-deliveries.ts',
    text: 'from webhook_endpoints as e cross join lateral ${liveKeyOf(sql)} as k\n      where disabled_at',
    mutation:
      'from webhook_endpoints as e left join lateral ${liveKeyOf(sql)} as k on true\n      where disabled_at',
    test: 'test/api/webhooks/owners.test.ts',
    claim:
      'an endpoint whose key ends gets nothing more once the key expires: no new event, none that waits',
    control:
      'a key for webhooks alone can neither repeat, list, test nor enable what it may not read',
  },
  {
    file: 'src/webhooks/deliver-events.ts',
    text: '    if (heldMs > LEASE_MS - 2 * CALL_MS) {',
    mutation: '    void CALL_MS\n    if (heldMs > 10 * LEASE_MS) {',
    test: 'test/api/webhooks/delivery.test.ts',
    claim: 'a claim that stalled until its lease had nearly expired is not sent',
    control:
      "an endpoint gets the event, which the library's own verifier accepts, and no other header of ours",
  },
  {
    file: 'src/webhooks/deliver-events.ts',
    text: '    if (!event || !delivery.isReadable) {',
    mutation: '    if (!event) {',
    test: 'test/api/webhooks/owners.test.ts',
    claim:
      'a key that loses a scope gets no refund events any more, neither new ones nor those that wait',
    control:
      'a key for webhooks alone can neither repeat, list, test nor enable what it may not read',
  },
  {
    file: 'src/webhooks/deliver-events.ts',
    text: '    const at = new Date(delivery.claimedAt + heldMs)',
    mutation: '    const at = ctx.now()',
    test: 'test/api/webhooks/delivery.test.ts',
    claim: 'an endpoint gets database time, however wrong the clock of the sending process is',
    control:
      "an endpoint gets the event, which the library's own verifier accepts, and no other header of ours",
  },
  {
    file: 'src/webhooks/delivery-log.ts',
    text: '    where e.id = ${sql(alias)}.event_id and e.merchant_code = ${merchantCode} and ${isReadable})`',
    mutation:
      '    where e.id = ${sql(alias)}.event_id and e.merchant_code >= ${merchantCode.slice(0, 0)} and ${isReadable})`',
    test: 'test/console/story/story.test.ts',
    claim:
      'beside the payments stand the webhooks that were sent for it, of its own account only, with their results',
    control: 'the story of a refunded payment shows the payment with what is left',
  },
  {
    file: 'src/webhooks/owner.ts',
    text: '    ${key}.merchants && array[${EVERY_MERCHANT}, ${row}.merchant_code]\n    and case',
    mutation: '    ${key}.merchants is distinct from array[${EVERY_MERCHANT}]\n    and case',
    test: 'test/api/webhooks/owners.test.ts',
    claim: 'an endpoint whose key ends of a person ends with the access of the person',
    control:
      'an endpoint whose key ends belongs to whoever gives it other types, so that the owner may read what it gets',
  },
  {
    file: 'src/webhooks/record-result.ts',
    text: '  const gone = attempt.status === 410',
    mutation: '  const gone = attempt.status === 411',
    test: 'test/api/webhooks/outage.test.ts',
    claim:
      'an endpoint is disabled by a 410 at once: nothing more is sent or fanned out until it is enabled and continues in order',
    control:
      'an endpoint is disabled by a failure five days after the first since its last success, and not before',
  },
  {
    file: 'src/webhooks/record-result.ts',
    text: 'const DELAYS_S = [5, 30,',
    mutation: 'const DELAYS_S = [5, 5,',
    test: 'test/api/webhooks/delivery.test.ts',
    claim:
      'an endpoint that fails for a while gets the same event, under the same id, by the retry schedule',
    control:
      "an endpoint gets the event, which the library's own verifier accepts, and no other header of ours",
  },
]
