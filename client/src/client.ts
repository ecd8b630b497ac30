import { type Cards, createCards } from './cards.ts'
import { createWebhookEndpoints, type WebhookEndpoints } from './endpoints.ts'
import { createEvents, type Events } from './events.ts'
import { createTransport } from './http.ts'
import {
  createDiscrepancies,
  createHolds,
  createPayments,
  createSearch,
  type Discrepancies,
  type Holds,
  type Payments,
  type Search,
} from './objects.ts'
import { type ClientOptions, readOptions } from './options.ts'
import { createRefunds, type Refunds } from './refunds.ts'
import { createTransactions, type Transactions } from './transactions.ts'

/** A client of the service's API, for order systems. */
export type Client = {
  transactions: Transactions
  payments: Payments
  refunds: Refunds
  cards: Cards
  discrepancies: Discrepancies
  holds: Holds
  search: Search
  events: Events
  webhookEndpoints: WebhookEndpoints
}

/**
 * Creates a client. It sends no request yet, holds no connection and needs no closing. Reads, and refunds
 * with their idempotency key, are retried after transient failures (no connection, 408, 429, 5xx) until
 * `timeoutMs`.
 * @throws TypeError naming the invalid option
 */
export function createClient(options: ClientOptions): Client {
  const transport = createTransport(readOptions(options))
  return {
    transactions: createTransactions(transport),
    payments: createPayments(transport),
    refunds: createRefunds(transport),
    cards: createCards(transport),
    discrepancies: createDiscrepancies(transport),
    holds: createHolds(transport),
    search: createSearch(transport),
    events: createEvents(transport),
    webhookEndpoints: createWebhookEndpoints(transport),
  }
}
