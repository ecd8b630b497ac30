import { narrowMerchants } from '../../access/authenticate.ts'
import { findSubject } from '../../decisions/hold-subject.ts'
import { changeHold } from '../../decisions/holds.ts'
import { DomainError, REFUSALS } from '../../errors.ts'
import { Reason } from '../../refunds/request-schema.ts'
import type { ConsoleContext } from '../context.ts'
import type { ConsoleRequest } from '../env.ts'
import { readForm } from '../forms/protect-forms.ts'
import { nameAnchor, storyPath } from '../paths.ts'
import { requireScope } from '../permissions.ts'
import { redirectWith } from '../redirect.ts'
import { listTexts, t } from '../view.ts'
import { findOwn, respondStory, type StoryOptions } from './respond-story.tsx'

const OPERATIONS = {
  held: 'PUT /v1/holds/{target}/{id}',
  released: 'DELETE /v1/holds/{target}/{id}',
}

/**
 * Holds a payment or a refund for the reason in its form, or releases the hold, and leads back to the story. What is
 * wrong with the form, and a refusal, show on the story itself.
 */
export async function postHold(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  target: 'payment' | 'refund',
  { merchant, id }: { merchant: string; id: string },
): Promise<Response> {
  requireScope(c, 'ops')
  const access = c.get('access')
  const subject = await findSubject(ctx.sql, narrowMerchants(access, merchant), target, id)
  if (subject.target === 'merchant') throw new DomainError('not_found', 'Not a payment or a refund')
  const { transaction } = subject
  const anchor = nameAnchor(target, subject.id)
  const respond = async (options: StoryOptions) =>
    respondStory(ctx, c, await findOwn(ctx, c, transaction), options)

  const form = await readForm(c)
  const reason = Reason.min(1).safeParse(form.reason)
  if (!reason.success) {
    const draft = {
      id: `hold-${anchor}`,
      reason: form.reason ?? '',
      problem: t('story.invalidReason'),
    }
    return await respond({ status: 422, draft })
  }
  const held = form.held === 'true'
  const done = held ? 'held' : 'released'
  try {
    const change = { held, reason: reason.data, operation: OPERATIONS[done] }
    await changeHold(ctx, access, subject, change)
  } catch (error) {
    const refusal = error instanceof DomainError ? explain(error) : undefined
    if (!(error instanceof DomainError) || refusal === undefined) throw error
    c.set('refusal', error.code)
    return await respond({ status: REFUSALS[error.code].status, refusal })
  }
  return redirectWith(c, storyPath(transaction, anchor), done)
}

function explain(error: DomainError): string | undefined {
  return listTexts('story.refusals').find(([code]) => code === error.code)?.[1]
}
