/**
 * The published entry of `@ipn-processor/client`, and the only file that re-exports. In this repository
 * only tests and examples import it.
 */

export type {
  Discrepancy,
  ExternalRefund,
  Hold,
  Payment,
  Receiver,
  Refund,
  RefundApproval,
  RefundPreview,
  RefundStatus,
  Resolution,
  SurplusPreview,
  Sync,
  Transaction,
  TransactionState,
  WebhookEndpoint,
} from './api-types.ts'
export type { CardFilter, CardOptions, Cards, ListedCard, VirtualCard } from './cards.ts'
export { type Client, createClient } from './create-client.ts'
export type { Discrepancies } from './discrepancies.ts'
export {
  AbortError,
  ConflictError,
  ConnectionError,
  CursorExpiredError,
  ExceedsRefundableError,
  type FieldProblem,
  ForbiddenError,
  IdempotencyKeyReusedError,
  InvalidRequestError,
  IpnProcessorError,
  NotFoundError,
  ProblemError,
  RateLimitedError,
  TimeoutError,
  UnauthenticatedError,
  UnavailableError,
} from './errors.ts'
export type {
  Event,
  EventPage,
  Events,
  EventType,
  EventWish,
  FollowedEvent,
  Following,
} from './events.ts'
export type { RefundProof, Removed, Snapshot, TimelineEntry } from './history-types.ts'
export type { HoldState, Holds, HoldTarget } from './holds.ts'
export type { CsvPage, Listing, Page, Pages, PageWish } from './listing.ts'
export type { CallOptions, ClientOptions, Fetch } from './options.ts'
export type { PaymentFilter, Payments } from './payments.ts'
export type {
  RefundFilter,
  Refunds,
} from './refunds.ts'
export type { Search, SearchHit } from './search.ts'
export type {
  PreparedRefund,
  PreparedSurplusRefund,
  RefundWish,
  RequestedRefund,
} from './send-refund.ts'
export type { TransactionFilter, Transactions, TransactionWait } from './transactions.ts'
export type {
  RegisteredWebhook,
  RotatedWebhookSecret,
  WebhookChange,
  WebhookDelivery,
  WebhookDeliveryFilter,
  WebhookEndpoints,
  WebhookRotation,
  WebhookTest,
  WebhookWish,
} from './webhook-endpoints.ts'
