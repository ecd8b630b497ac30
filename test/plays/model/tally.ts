/**
 * How often a run of 3,000 steps does each thing at least: a third of what the fixed seed did. A step that no longer
 * takes effect is found by its count, and a thing that is not listed by its name.
 */
const LEAST = `
  requested 53 | requested together 7 | requested under the same key 5 | requested with the same id 4
  refused a request 28 | refused while held 8 | repeated a request 13 | checked that there was room 13
  cancelled 3 | cancelled before it was approved 2 | cancelled while answered 2
  refused to cancel: already_sent 5 | refused to cancel: not_cancellable 2
  refused to cancel: growth_may_be_its_own 2 | refused to cancel while recording 3
  refused to cancel while leaving 1 | held: merchant 5 | held: payment 6 | held: refund 2 | held while answered 2
  held while recording 2 | held while leaving 1 | held back 10 | released: merchant 2 | released: payment 3
  released: refund 2 | refused a release 4 | approved 3 | declined 1
  refused to decline: growth_may_be_its_own 1 | refused an approval after its time 0
  refused an approval by the same person 1 | decided in review 2 | decided while accepted 3
  decided while unknown 1 | refused a decision too early 1 | decided wrongly 1
  refused a decision against evidence 1 | refused a decision by the one that asked 4
  confirmed an inferred success 4 | decided again: succeeded as failed 2 | decided again: succeeded as returned 2
  decided again: failed as succeeded 1 | decided again: failed as returned 1
  decided again: returned as succeeded 1 | decided again: returned as failed 1
  decided again: returned as returned 2 | refused to decide again by the same person 1 | refused to decide again 8
  came back: answers 2 | came back: people 2 | righted 27 | righted an external refund 21
  decided about an external refund 3 | decided wrongly about an external refund 9
  refused a decision about an external refund 1 | synced 131 | query: none 96 | query: reset 1 | query: code 1
  query: pause 2 | woke 4 | woke and sent 1 | passed time 18 | passed time and synced 32 | saved 6
  lost commits 2 | maintained 14 | changed the key 5 | sealed again 5 | sent: through 34 | sent: unreachable 1
  sent: dieBefore 1 | sent: dieAfter 1 | sent: pauseBefore 1 | sent: pauseAfter 2 | sent: hang 1 | sent: early 1
  sent: reset 1 | sent: http500 1 | sent: garbage 1 | sent: truncate 1 | sent: acceptThenReset 6
  sent: acceptThenCode 2 | sent: code 1 | settled 10 | settled before its notification 5 | hid an outcome 12
  settled as failed 2 | notified 8 | notified again 27 | notified of progress 2 | notified of an unclear failure 3
  notified in upper case 8 | contradicted 3 | contradicted a portal refund before 2
  contradicted a portal refund after 6 | notified again what never happened 8 | refunded elsewhere 18
  refunded elsewhere, notified late 6 | refunded under an id of the other account 2
  failed under an id of the other account 6 | lagged 29 | caught up 2 | not listed 5 | listed again 1
  charged back 4 | paid again 1 | answered from the past 1 | forgot a request id 3 | ended: succeeded 42
  inferred 8 | ended: failed 32 | ended: returned 4 | ended: approval_expired 11 | ended: not_sent_in_time 1`

/** What was done too rarely, or is not listed, with how often and how often at least. */
export function findTooRare(tally: ReadonlyMap<string, number>): string[] {
  const listed = LEAST.split(/[|\n]/).map((one) => /^ *(.+) (\d+) *$/.exec(one) ?? [])
  const least = new Map(listed.map(([, deed = '', times]) => [deed, Number(times ?? 0)]))
  const unlisted = [...tally.keys()].filter((deed) => !least.has(deed))
  const rare = [...least].filter(([deed, times]) => (tally.get(deed) ?? 0) < times)
  return [
    ...unlisted,
    ...rare.map(([deed, times]) => `${deed}: ${tally.get(deed) ?? 0} < ${times}`),
  ]
}
