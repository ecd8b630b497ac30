import type { MayEnd } from '../../decisions/second-person.ts'
import type { ConsoleRequest } from '../env.ts'
import { actionPath, nameAnchor } from '../paths.ts'
import { t } from '../view.ts'
import { type Draft, ReasonForm } from './reason-form.tsx'

const OF = {
  payment: { collection: 'payments', submit: 'story.actions.holdPayment' },
  refund: { collection: 'refunds', submit: 'story.actions.holdRefund' },
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
  if (isHeld && mayRelease === 'another')
    return <p class="soft">{t('story.actions.releaseByAnother')}</p>
  const { collection, submit } = OF[target]
  const releaseHint =
    mayRelease === 'self' ? t('story.actions.releaseBySelf') : t('story.actions.releaseHint')
  return (
    <ReasonForm
      c={c}
      id={`hold-${nameAnchor(target, id)}`}
      action={actionPath(collection, { merchantCode, id }, 'hold')}
      fields={{ held: String(!isHeld) }}
      title={isHeld ? t('story.actions.release') : t('story.actions.hold')}
      submit={isHeld ? t('story.actions.release') : t(submit)}
      hint={isHeld ? releaseHint : t('story.actions.holdHint')}
      draft={draft}
    />
  )
}
