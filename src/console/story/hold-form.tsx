import type { MayEnd } from '../../decisions/second-person.ts'
import type { ConsoleRequest } from '../env.ts'
import { actionPath, nameAnchor } from '../paths.ts'
import { TEXTS } from '../texts/en.ts'
import { type Draft, ReasonForm } from './reason-form.tsx'

const { actions } = TEXTS.story

const OF = {
  payment: { collection: 'payments', submit: actions.holdPayment },
  refund: { collection: 'refunds', submit: actions.holdRefund },
} as const

/** Whether the person may release the hold of a payment or a refund. */
export type MayRelease = (target: keyof typeof OF, id: string) => MayEnd | undefined

/** To hold a payment or a refund, or to release the hold; what another person has to release is explained instead. */
export function HoldForm(props: {
  c: ConsoleRequest
  target: keyof typeof OF
  merchantCode: string
  id: string
  isHeld: boolean
  mayRelease: MayEnd | undefined
  draft: Draft | undefined
}) {
  const { c, target, merchantCode, id, isHeld, mayRelease, draft } = props
  if (isHeld && mayRelease === 'another') return <p class="soft">{actions.releaseByAnother}</p>
  const { collection, submit } = OF[target]
  const releaseHint = mayRelease === 'self' ? actions.releaseBySelf : actions.releaseHint
  return (
    <ReasonForm
      c={c}
      id={`hold-${nameAnchor(target, id)}`}
      action={actionPath(collection, { merchantCode, id }, 'hold')}
      fields={{ held: String(!isHeld) }}
      title={isHeld ? actions.release : actions.hold}
      submit={isHeld ? actions.release : submit}
      hint={isHeld ? releaseHint : actions.holdHint}
      draft={draft}
    />
  )
}
