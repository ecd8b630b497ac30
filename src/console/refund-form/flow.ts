import type { Child } from 'hono/jsx'
import type { Access } from '../../access/types.ts'
import type { PreviewedRefund } from '../../refunds/request.ts'
import type { RequestedRefund } from '../../refunds/request-schema.ts'
import type { RefundView } from '../../refunds/view.ts'
import type { PreparedRefund } from './ticket.ts'

/** What a form refunds, as it is now. Amounts are decimal strings. */
export type RefundSubject = {
  merchantCode: string
  transactionId: string
  /** The payment that is refunded; undefined when nothing can be. */
  paymentId: string | undefined
  /** The path of its form. */
  path: string
  title: string
  currency: string | null
  /** What can be refunded in one refund. */
  left: string
  needsReceiver: boolean
  /** For `expectedVersion`; no newer than everything else here. */
  version: string
  /** The newest ones, newest first. */
  refunds: readonly RefundView[]
  /** Why nothing can be refunded; undefined when something can. */
  obstacle: string | undefined
  /** What may keep a refund from being sent. */
  warnings: readonly string[]
  /** What is refunded, as a part of the page. */
  summary: Child
}

/** A refund to preview or to request, and the version of its subject that was shown. */
export type AskedRefund = PreparedRefund & { expectedVersion: string }

/** One of the two kinds of refund that people request, over the domain's functions. */
export type RefundFlow = {
  /** The path of the routes. */
  route: string
  /**
   * Reads what the path names.
   * @throws DomainError when the person may not see it
   */
  read(access: Access, path: PathParams): Promise<RefundSubject>
  /** @throws DomainError, StaleVersionError as the request would */
  preview(access: Access, subject: RefundSubject, asked: AskedRefund): Promise<PreviewedRefund>
  /** @throws DomainError, StaleVersionError */
  request(
    access: Access,
    subject: RefundSubject,
    key: string,
    asked: AskedRefund,
  ): Promise<RequestedRefund>
}

/** The account, and the id of the payment or the transaction. */
export type PathParams = { merchant: string; id: string }
