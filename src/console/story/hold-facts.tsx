import type { StoredHold } from '../../payments/view.ts'
import { Time } from '../cells.tsx'
import { t } from '../view.ts'

/** Who set a hold, why, and since when. */
export function HoldFacts({ hold }: { hold: NonNullable<StoredHold> }) {
  return (
    <>
      {t('story.heldBy', { by: hold.by, reason: hold.reason })} <Time iso={hold.since} />
    </>
  )
}
