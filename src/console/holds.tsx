import { z } from 'zod'
import { narrowMerchants } from '../access/authenticate.ts'
import { changeHold, findSubject, type HoldSubject } from '../decisions/holds.ts'
import type { MayEnd } from '../decisions/second-person.ts'
import { DomainError } from '../errors.ts'
import type { StoredHold } from '../payments/view.ts'
import { Time } from './cells.tsx'
import { ActionForm, TextInput } from './forms.tsx'
import {
  type Asked,
  type Done,
  defineAction,
  explainHoldsBack,
  parseFields,
  requireText,
  Ticked,
} from './page.ts'
import { holdPath, nameAnchor, storyPath } from './paths.ts'
import { t, useKept } from './view.ts'

const OPERATIONS = {
  held: 'PUT /v1/holds/{target}/{id}',
  released: 'DELETE /v1/holds/{target}/{id}',
}

const HoldFields = z.object({
  held: Ticked,
  /** When the hold was set that the form was shown with; empty for none. */
  shown: z.string().optional(),
  reason: requireText('decisions.problems.reason'),
})

export async function postHold(
  { ctx, access, fields }: Asked<unknown>,
  subject: HoldSubject,
): Promise<Done> {
  const { held, shown: shownSince, reason } = parseFields(HoldFields, fields)
  const done = held ? 'held' : 'released'
  const change = { held, reason, operation: OPERATIONS[done], shownSince }
  await changeHold(ctx, access, subject, change)
  return { notice: done }
}

export const paymentHold = defineAction({
  path: '/console/payments/:merchant/:id/hold',
  scope: 'ops',
  async load(ctx, c) {
    const { merchant = '', id = '' } = c.req.param()
    const merchants = narrowMerchants(c.get('access'), merchant)
    const subject = await findSubject(ctx.db.sql, merchants, 'payment', id)
    if (subject.target !== 'merchant') return subject
    throw new DomainError('not_found', 'Not a payment')
  },
  pageOf: (_, { transaction }) => storyPath(transaction),
  explain: explainHoldsBack,
  async run(asked) {
    const done = await postHold(asked, asked.of)
    const { transaction, id } = asked.of
    return { ...done, to: storyPath(transaction, nameAnchor('payment', id)) }
  },
})

export function HoldForm(props: {
  target: 'payment' | 'refund'
  merchantCode: string
  id: string
  hold: StoredHold
  mayRelease: MayEnd | undefined
}) {
  const { target, merchantCode, id, hold: set, mayRelease } = props
  const isHeld = set !== null
  const action = holdPath(target, merchantCode, id)
  const { held: wanted, reason } = useKept(action).fields
  // What was typed to hold it does not stand in the form that releases it.
  const typed = wanted === String(!isHeld) ? reason : undefined
  if (isHeld && mayRelease === 'another') {
    return <p class="soft">{t('story.actions.releaseByAnother')}</p>
  }
  const hint = !isHeld
    ? t('story.actions.holdHint')
    : t(mayRelease === 'self' ? 'story.actions.releaseBySelf' : 'story.actions.releaseHint')
  const hold = target === 'payment' ? 'story.actions.holdPayment' : 'story.actions.holdRefund'
  // The two forms have different ids: an open page that refreshes itself does not move what was typed to the other.
  const name = `${isHeld ? 'release' : 'hold'}-${nameAnchor(target, id)}`
  const form = { action, fields: { held: String(!isHeld), shown: set?.since ?? '' } }
  return (
    <details id={name} open={typed !== undefined}>
      <summary>{t(isHeld ? 'story.actions.release' : 'story.actions.hold')}</summary>
      <ActionForm {...form} submit={t(isHeld ? 'story.actions.release' : hold)}>
        {(field) => (
          <TextInput
            {...field('reason', t('field.reason'), hint)}
            {...{ id: `reason-${name}`, type: 'text', maxlength: 500, required: true }}
            value={typed}
          />
        )}
      </ActionForm>
    </details>
  )
}

export function HoldFacts({ hold: { by, reason, since } }: { hold: NonNullable<StoredHold> }) {
  return (
    <>
      {t('story.heldBy', { by, reason })} <Time iso={since} />
    </>
  )
}
