import type { Sample } from './play-sample.ts'

/** A page of the console as it is tested and photographed. */
export type ListedPage = { name: string; path: string }

/** Lists every page of the console, with objects of the sample. */
export function listPages(sample: Sample, merchant: string): ListedPage[] {
  const { refunded, paidTwice, toApprove, inReview, discrepancyId } = sample
  const of = (kind: string, id: string) => `/console/${kind}/${merchant}/${id}`
  return [
    { name: 'search-result', path: '/console?q=DH1002' },
    { name: 'search-nothing', path: '/console?q=DH9999' },
    { name: 'transaction', path: of('transactions', refunded.transactionId) },
    { name: 'history', path: `${of('transactions', refunded.transactionId)}?view=history` },
    { name: 'technical', path: `${of('transactions', refunded.transactionId)}?view=technical` },
    { name: 'paid-twice', path: of('transactions', paidTwice.transactionId) },
    { name: 'surplus', path: `${of('transactions', paidTwice.transactionId)}/surplus` },
    { name: 'refund-form', path: `${of('payments', refunded.paymentId)}/refund` },
    { name: 'tasks', path: '/console/tasks' },
    { name: 'approval', path: of('refunds', toApprove.refundId) },
    { name: 'review', path: of('refunds', inReview.refundId) },
    { name: 'discrepancy', path: of('discrepancies', discrepancyId) },
    { name: 'transactions', path: '/console/transactions' },
    { name: 'payments', path: '/console/payments' },
    { name: 'refunds', path: '/console/refunds' },
    { name: 'discrepancies', path: '/console/discrepancies' },
    { name: 'audit', path: '/console/audit' },
    { name: 'health', path: '/console/health' },
    { name: 'reasons', path: '/console/reasons' },
    { name: 'people', path: '/console/people' },
    { name: 'account', path: '/console/account' },
    { name: 'sign-in', path: '/console/sign-in' },
    { name: 'not-found', path: of('transactions', 'unknown') },
  ]
}
