import { narrowMerchants } from '../../access/authenticate.ts'
import { DomainError } from '../../errors.ts'
import { changeHold } from '../../holds/change-hold.ts'
import { findSubject } from '../../holds/find-subject.ts'
import { findRefund } from '../../refunds/find-refunds.ts'
import { Reason } from '../../refunds/request/params.ts'
import { cancelRefund } from '../../refunds/review/cancel-refund.ts'
import type { ConsoleContext } from '../context.ts'
import type { ConsoleRequest, FormFields } from '../env.ts'
import { readForm } from '../forms/protect-forms.ts'
import { nameAnchor, storyPath } from '../paths.ts'
import { requireScope } from '../permissions.ts'
import { redirectWith } from '../redirect.ts'
import { TEXTS } from '../texts/en.ts'
import { findOwn, respondStory, type StoryOptions } from './respond-story.tsx'

const { refusals, invalidReason } = TEXTS.story

/** What an action is about, from its path. */
type Target = { merchantCode: string; id: string }

const OPERATION = { hold: 'PUT /v1/holds/{target}/{id}', release: 'DELETE /v1/holds/{target}/{id}' }

/** Holds a payment or a refund, or releases the hold. */
export async function postHold(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  target: 'payment' | 'refund',
  { merchantCode, id }: Target,
): Promise<Response> {
  requireScope(c, 'ops')
  const access = c.get('access')
  const subject = await findSubject(ctx.sql, narrowMerchants(access, merchantCode), target, id)
  if (subject.target === 'merchant') throw new DomainError('not_found', 'Not a payment or a refund')
  const form = await readForm(c)
  const held = form.held === 'true'
  const anchor = nameAnchor(target, subject.id)
  const operation = held ? OPERATION.hold : OPERATION.release
  return await act(
    ctx,
    c,
    { key: subject.transaction, anchor, form, formId: `hold-${anchor}` },
    {
      notice: held ? 'held' : 'released',
      run: (reason) => changeHold(ctx, access, subject, { held, reason, operation }),
    },
  )
}

/** Cancels a refund that was never sent. */
export async function postCancellation(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  { merchantCode, id }: Target,
): Promise<Response> {
  requireScope(c, 'refunds:write')
  const access = c.get('access')
  const found = await findRefund(ctx, narrowMerchants(access, merchantCode), id)
  const form = await readForm(c)
  const anchor = nameAnchor('refund', found.refund.refundId)
  return await act(
    ctx,
    c,
    { key: found.refund, anchor, form, formId: `cancel-${anchor}` },
    {
      notice: 'cancelled',
      run: (reason) => cancelRefund(ctx, found, reason, access),
    },
  )
}

type Place = {
  key: { merchantCode: string; transactionId: string }
  anchor: string
  form: FormFields
  formId: string
}

/** Carries out an action with the reason of its form, and leads back; a refusal shows on the page itself. */
async function act(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  { key, anchor, form, formId }: Place,
  {
    notice,
    run,
  }: { notice: 'held' | 'released' | 'cancelled'; run: (reason: string) => Promise<unknown> },
): Promise<Response> {
  const { merchantCode, transactionId } = key
  const respond = async (options: StoryOptions) =>
    respondStory(ctx, c, await findOwn(ctx, c, { merchantCode, transactionId }), options)
  const reason = Reason.min(1).safeParse(form.reason)
  if (!reason.success) {
    const draft = { id: formId, reason: form.reason ?? '', problem: invalidReason }
    return await respond({ status: 422, draft })
  }
  try {
    await run(reason.data)
  } catch (error) {
    const refusal = explain(error)
    if (refusal === undefined) throw error
    return await respond({ status: 409, refusal })
  }
  return redirectWith(c, storyPath(key, anchor), notice)
}

function explain(error: unknown): string | undefined {
  if (!(error instanceof DomainError)) return undefined
  return Object.entries(refusals).find(([code]) => code === error.code)?.[1]
}
