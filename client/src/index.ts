/** The published entry of `@ipn-processor/client`, and the only file that re-exports. */

export type { CardFilter, CardOptions, Cards, ListedCard, VirtualCard } from './cards.ts'
export { type Client, createClient } from './client.ts'
export type { WebhookEndpoints } from './endpoints.ts'
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
  EventOptions,
  EventPage,
  Events,
  EventType,
  FollowedEvent,
  Following,
} from './events.ts'
export type { CsvPage, Listing, Page, PageOptions, Pages } from './lists.ts'
export type { Discrepancies, Holds, Payments, Search } from './objects.ts'
export type { CallOptions, ClientOptions, Fetch } from './options.ts'
export type {
  PreparedRefund,
  PreparedSurplusRefund,
  RefundStatus,
  Refunds,
  RequestedRefund,
} from './refunds.ts'
export type { TransactionState, Transactions, TransactionWait } from './transactions.ts'
export type {
  Discrepancy,
  Event,
  ExternalRefund,
  Hold,
  HoldState,
  NewWebhookEndpoint,
  Payment,
  Queries,
  Receiver,
  Refund,
  RefundApproval,
  RefundPreview,
  RefundProof,
  RefundRequest,
  RegisteredWebhookEndpoint,
  Resolution,
  RotatedWebhookSecret,
  SearchHit,
  SurplusPreview,
  Sync,
  TimelineEntry,
  Transaction,
  WebhookDelivery,
  WebhookDeliveryReplay,
  WebhookEndpoint,
  WebhookEndpointChange,
  WebhookSecretRotation,
  WebhookTest,
} from './types.gen.ts'
