import type { z } from '@hono/zod-openapi'
import type * as client from '@ipn-processor/client'
import type { Client, Listing } from '@ipn-processor/client'
import type { ExtractSchema } from 'hono/types'
import { expectTypeOf, it } from 'vitest'
import type { ListedCard, VirtualCard } from '../../../src/cards/view.ts'
import type { approvalRoutes, decisionRoutes, reviewRoutes } from '../../../src/decisions/routes.ts'
import type { Discrepancy, discrepancyRoutes } from '../../../src/discrepancies/routes.ts'
import type { Event, EventPage } from '../../../src/feed/view.ts'
import type { paymentRoutes } from '../../../src/payments/routes.ts'
import type { Payment } from '../../../src/payments/view.ts'
import type { requestRoutes, surplusRoutes } from '../../../src/refunds/request-routes.ts'
import type { RefundRequest } from '../../../src/refunds/request-schema.ts'
import type { externalRefundRoutes, refundRoutes } from '../../../src/refunds/routes.ts'
import type { Refund, RefundPreview, SurplusPreview } from '../../../src/refunds/view.ts'
import type { searchRoutes } from '../../../src/search.ts'
import type { transactionRoutes } from '../../../src/transactions/routes.ts'
import type { TimelineEntry } from '../../../src/transactions/timeline.ts'
import type { Transaction } from '../../../src/transactions/view.ts'
import type { deliveryRoutes } from '../../../src/webhooks/delivery-routes.ts'
import type { webhookRoutes } from '../../../src/webhooks/routes.ts'
import type { EndpointChange, NewEndpoint, SecretRotation } from '../../../src/webhooks/schemas.ts'

type Routes = ExtractSchema<ReturnType<typeof transactionRoutes>> &
  ExtractSchema<ReturnType<typeof paymentRoutes>> &
  ExtractSchema<ReturnType<typeof requestRoutes>> &
  ExtractSchema<ReturnType<typeof refundRoutes>> &
  ExtractSchema<ReturnType<typeof surplusRoutes>> &
  ExtractSchema<ReturnType<typeof decisionRoutes>> &
  ExtractSchema<ReturnType<typeof externalRefundRoutes>> &
  ExtractSchema<ReturnType<typeof approvalRoutes>> &
  ExtractSchema<ReturnType<typeof discrepancyRoutes>> &
  ExtractSchema<ReturnType<typeof reviewRoutes>> &
  ExtractSchema<ReturnType<typeof searchRoutes>> &
  ExtractSchema<ReturnType<typeof deliveryRoutes>> &
  ExtractSchema<ReturnType<typeof webhookRoutes>>

/** The declared input and output of a route; a list as JSON, not as CSV. */
type Output<Path extends keyof Routes, Method extends keyof Routes[Path], Status> =
  Extract<Routes[Path][Method], { status: Status }> extends { output: infer Given }
    ? Exclude<Given, string>
    : never
type Query<
  Path extends keyof Routes,
  Method extends keyof Routes[Path],
> = Routes[Path][Method] extends { input: { query: infer Taken } }
  ? Exclude<keyof Taken, 'merchantCode'>
  : never

type Given<Method extends (...args: never[]) => unknown> = Awaited<ReturnType<Method>>
type Listed<Method extends (...args: never[]) => unknown> =
  ReturnType<Method> extends Listing<infer One> ? { data: One[]; nextCursor: string | null } : never
type Filter<Method extends (...args: never[]) => unknown> = keyof NonNullable<Parameters<Method>[0]>

// The compiler checks these claims in `npm run check`; at run time they do nothing.
it('the types match the schemas, member by member', () => {
  expectTypeOf<client.Transaction>().toEqualTypeOf<z.infer<typeof Transaction>>()
  expectTypeOf<client.Payment>().toEqualTypeOf<z.infer<typeof Payment>>()
  expectTypeOf<client.Refund>().toEqualTypeOf<z.infer<typeof Refund>>()
  expectTypeOf<client.RefundPreview>().toEqualTypeOf<z.infer<typeof RefundPreview>>()
  expectTypeOf<client.SurplusPreview>().toMatchTypeOf<z.infer<typeof SurplusPreview>>()
  expectTypeOf<z.infer<typeof SurplusPreview>>().toMatchTypeOf<client.SurplusPreview>()
  expectTypeOf<client.TimelineEntry>().toEqualTypeOf<z.infer<typeof TimelineEntry>>()
  expectTypeOf<client.Discrepancy>().toEqualTypeOf<z.infer<typeof Discrepancy>>()
  expectTypeOf<client.RefundWish>().toEqualTypeOf<z.input<typeof RefundRequest>>()
  expectTypeOf<client.Event>().toEqualTypeOf<z.infer<typeof Event>>()
  expectTypeOf<client.EventPage>().toEqualTypeOf<z.infer<typeof EventPage>>()
  expectTypeOf<client.WebhookWish>().toEqualTypeOf<z.input<typeof NewEndpoint>>()
  expectTypeOf<client.WebhookChange>().toEqualTypeOf<z.input<typeof EndpointChange>>()
  expectTypeOf<client.WebhookRotation>().toEqualTypeOf<z.input<typeof SecretRotation>>()
})

it('cards have the members of their schemas; amounts are decimal strings here', () => {
  type Names<T> = keyof { [Name in keyof T as string extends Name ? never : Name]: T[Name] }
  type Inner<T, Name extends keyof T> = Names<NonNullable<T[Name]>>
  type One = z.infer<typeof VirtualCard>
  type Listed = z.infer<typeof ListedCard>
  expectTypeOf<keyof client.VirtualCard>().toEqualTypeOf<Names<One>>()
  expectTypeOf<Inner<client.VirtualCard, 'cardData'>>().toEqualTypeOf<Inner<One, 'cardData'>>()
  expectTypeOf<Inner<client.VirtualCard, 'cardPolicy'>>().toEqualTypeOf<Inner<One, 'cardPolicy'>>()
  expectTypeOf<keyof client.ListedCard>().toEqualTypeOf<Names<Listed>>()
  expectTypeOf<Inner<client.ListedCard, 'cardData'>>().toEqualTypeOf<Inner<Listed, 'cardData'>>()
  expectTypeOf<Inner<client.ListedCard, 'cardPolicy'>>().toEqualTypeOf<
    Inner<Listed, 'cardPolicy'>
  >()
})

it('each method resolves to the response of its route', () => {
  type Transactions = Client['transactions']
  type One = Output<'/v1/transactions/:transactionId', '$get', 200>
  expectTypeOf<Given<Transactions['get']>>().toEqualTypeOf<One>()
  expectTypeOf<Given<Transactions['wait']>>().toEqualTypeOf<One>()
  expectTypeOf<Given<Transactions['sync']>>().toEqualTypeOf<
    Output<'/v1/transactions/:transactionId/sync', '$post', 202>
  >()
  expectTypeOf<Listed<Transactions['list']>>().toEqualTypeOf<
    Output<'/v1/transactions', '$get', 200>
  >()
  expectTypeOf<Listed<Transactions['timeline']>>().toEqualTypeOf<
    Output<'/v1/transactions/:transactionId/timeline', '$get', 200>
  >()
  type Payments = Client['payments']
  expectTypeOf<Given<Payments['get']>>().toEqualTypeOf<
    Output<'/v1/payments/:paymentId', '$get', 200>
  >()
  expectTypeOf<Listed<Payments['list']>>().toEqualTypeOf<Output<'/v1/payments', '$get', 200>>()
  expectTypeOf<Listed<Client['search']>>().toEqualTypeOf<Output<'/v1/search', '$get', 200>>()
  type Held = '/v1/holds/:target/:id'
  expectTypeOf<Given<Client['holds']['set']>>().toEqualTypeOf<Output<Held, '$put', 200>>()
  expectTypeOf<Given<Client['holds']['release']>>().toEqualTypeOf<Output<Held, '$delete', 200>>()
  type Discrepancies = Client['discrepancies']
  type Decided = '/v1/discrepancies/:id'
  expectTypeOf<Given<Discrepancies['resolve']>>().toEqualTypeOf<
    Output<`${Decided}/resolution`, '$post', 200>
  >()
  expectTypeOf<Given<Discrepancies['note']>>().toEqualTypeOf<
    Output<`${Decided}/note`, '$post', 200>
  >()
  expectTypeOf<Given<Discrepancies['assign']>>().toEqualTypeOf<
    Output<`${Decided}/assignee`, '$post', 200>
  >()
  expectTypeOf<Listed<Payments['externalRefunds']>>().toEqualTypeOf<
    Output<'/v1/payments/:paymentId/external-refunds', '$get', 200>
  >()
  expectTypeOf<Listed<Client['discrepancies']['list']>>().toEqualTypeOf<
    Output<'/v1/discrepancies', '$get', 200>
  >()
})

it('each refund method resolves to the response of its route, with the key added', () => {
  // In the routes' types `proof` has gone through a JSON conversion: it is compared above.
  type Plain<T> = Omit<T, 'proof'>
  type Refunds = Client['refunds']
  type One = Plain<Output<'/v1/refunds/:refundId', '$get', 200>>
  type Taken = Plain<Output<'/v1/payments/:paymentId/refunds', '$post', 202>>
  expectTypeOf<Plain<Given<Refunds['get']>>>().toEqualTypeOf<One>()
  expectTypeOf<Plain<Given<Refunds['approve']>>>().toEqualTypeOf<
    Plain<Output<'/v1/refunds/:refundId/approval', '$post', 200>>
  >()
  expectTypeOf<Plain<Given<Refunds['decline']>>>().toEqualTypeOf<
    Plain<Output<'/v1/refunds/:refundId/decline', '$post', 200>>
  >()
  expectTypeOf<Plain<Given<Refunds['wait']>>>().toEqualTypeOf<One>()
  expectTypeOf<Plain<Given<Refunds['cancel']>>>().toEqualTypeOf<
    Plain<Output<'/v1/refunds/:refundId/cancellation', '$post', 200>>
  >()
  expectTypeOf<Plain<Given<Refunds['send']>>>().toMatchTypeOf<Taken>()
  expectTypeOf<Given<Refunds['create']>>().toEqualTypeOf<Given<Refunds['send']>>()
  expectTypeOf<Given<Refunds['send']>['idempotencyKey']>().toEqualTypeOf<string>()
  expectTypeOf<Given<Refunds['preview']>>().toEqualTypeOf<
    Output<'/v1/payments/:paymentId/refunds', '$post', 200>
  >()
  type Surplus = '/v1/transactions/:transactionId/surplus-refund'
  expectTypeOf<Plain<Given<Refunds['send']>>>().toMatchTypeOf<
    Plain<Output<Surplus, '$post', 202>>
  >()
  expectTypeOf<Given<Refunds['previewSurplus']>>().toMatchTypeOf<Output<Surplus, '$post', 200>>()
  expectTypeOf<Plain<Listed<Refunds['list']>['data'][number]>>().toEqualTypeOf<
    Plain<Output<'/v1/refunds', '$get', 200>['data'][number]>
  >()
})

it('each webhook method resolves to the response of its route', () => {
  type Webhooks = Client['webhookEndpoints']
  type One = '/v1/webhook-endpoints/:endpointId'
  expectTypeOf<Given<Webhooks['create']>>().toEqualTypeOf<
    Output<'/v1/webhook-endpoints', '$post', 201>
  >()
  expectTypeOf<Listed<Webhooks['list']>>().toEqualTypeOf<
    Output<'/v1/webhook-endpoints', '$get', 200>
  >()
  expectTypeOf<Given<Webhooks['update']>>().toEqualTypeOf<Output<One, '$patch', 200>>()
  expectTypeOf<Given<Webhooks['rotateSecret']>>().toEqualTypeOf<
    Output<`${One}/rotate-secret`, '$post', 200>
  >()
  expectTypeOf<Listed<Webhooks['deliveries']>>().toEqualTypeOf<
    Output<`${One}/deliveries`, '$get', 200>
  >()
  expectTypeOf<Given<Webhooks['redeliver']>>().toEqualTypeOf<
    Output<`${One}/deliveries/:eventId/replay`, '$post', 202>
  >()
  expectTypeOf<Given<Webhooks['redeliver']>>().toEqualTypeOf<
    Output<`${One}/deliveries/replay`, '$post', 202>
  >()
  expectTypeOf<Given<Webhooks['test']>>().toEqualTypeOf<Output<`${One}/test`, '$post', 200>>()
  expectTypeOf<Given<Webhooks['enable']>>().toEqualTypeOf<Output<`${One}/enable`, '$post', 200>>()
  expectTypeOf<Given<Webhooks['replay']>>().toEqualTypeOf<Output<`${One}/replay`, '$post', 202>>()
})

it('the filters of deliveries are those of their route', () => {
  type Deliveries = Client['webhookEndpoints']['deliveries']
  expectTypeOf<keyof NonNullable<Parameters<Deliveries>[1]>>().toEqualTypeOf<
    Query<'/v1/webhook-endpoints/:endpointId/deliveries', '$get'>
  >()
})

it('the filters of a list are those of its route, except the account, which the client names', () => {
  expectTypeOf<Filter<Client['transactions']['list']>>().toEqualTypeOf<
    Query<'/v1/transactions', '$get'>
  >()
  expectTypeOf<Filter<Client['payments']['list']>>().toEqualTypeOf<Query<'/v1/payments', '$get'>>()
  expectTypeOf<Filter<Client['refunds']['list']>>().toEqualTypeOf<Query<'/v1/refunds', '$get'>>()
  expectTypeOf<Filter<Client['discrepancies']['list']>>().toEqualTypeOf<
    Query<'/v1/discrepancies', '$get'>
  >()
})
