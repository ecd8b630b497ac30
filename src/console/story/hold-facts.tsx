import type { StoredHold } from '../../payments/view.ts'
import { Time } from '../cells.tsx'
import { TEXTS } from '../texts/en.ts'

/** Who set a hold, why, and since when. */
export function HoldFacts({ hold }: { hold: NonNullable<StoredHold> }) {
  return (
    <>
      {TEXTS.story.heldBy(hold.by, hold.reason)} <Time iso={hold.since} />
    </>
  )
}
