import type { Access } from '../../access/types.ts'
import { DomainError } from '../../errors.ts'
import { listReasons } from '../../refunds/reasons.ts'
import type { ConsoleContext } from '../context.ts'
import type { ConsoleRequest } from '../env.ts'
import { listTexts } from '../view.ts'
import type { RefundFlow, RefundSubject } from './flow.ts'
import { createTicket, signTicket, type TicketOwner } from './ticket.ts'

/** A form and what it refunds, as it is now. */
export type OpenedForm = {
  c: ConsoleRequest
  ctx: ConsoleContext
  flow: RefundFlow
  access: Access
  subject: RefundSubject
  /** The reasons that may be chosen. */
  reasons: readonly string[]
  owner: TicketOwner
}

/**
 * Reads what a form needs.
 * @throws DomainError when the person may not see what it refunds
 */
export async function openForm(
  ctx: ConsoleContext,
  flow: RefundFlow,
  c: ConsoleRequest,
): Promise<OpenedForm> {
  const access = c.get('access')
  const session = c.get('session')
  if (!session) throw new DomainError('unauthenticated', 'Sign in')
  const { merchant = '', id = '' } = c.req.param()
  const subject = await flow.read(access, { merchant, id })
  const own = await listReasons(ctx, subject.merchantCode)
  const reasons =
    own.length > 0
      ? own.map(({ label }) => label)
      : listTexts('reasons.default').map(([, text]) => text)
  const owner = { personId: session.personId, path: subject.path }
  return { c, ctx, flow, access, subject, reasons, owner }
}

/** Makes the signed ticket of a new form, which is good for one refund of what is shown now. */
export function issueTicket({ ctx, owner, subject }: OpenedForm): string {
  const { version, left, refunds } = subject
  const ticket = createTicket({ version, left, lastRefundId: refunds[0]?.id ?? null })
  return signTicket(ctx.encryption, owner, ticket)
}
