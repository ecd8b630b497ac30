import { type Cards, createCards } from './cards.ts'
import { createDiscrepancies, type Discrepancies } from './discrepancies.ts'
import { createEvents, type Events } from './events.ts'
import { type ClientOptions, readOptions } from './options.ts'
import { createPayments, type Payments } from './payments.ts'
import { createRefunds, type Refunds } from './refunds.ts'
import { createTransactions, type Transactions } from './transactions.ts'
import { createTransport } from './transport.ts'
import { createWebhookEndpoints, type WebhookEndpoints } from './webhook-endpoints.ts'

/** The API of the service, in the hands of an order system. */
export type Client = {
  transactions: Transactions
  payments: Payments
  refunds: Refunds
  cards: Cards
  discrepancies: Discrepancies
  events: Events
  webhookEndpoints: WebhookEndpoints
}

/**
 * A client of the service. It sends nothing yet, keeps no connection, and needs no closing. Reads and keyed
 * refunds that fail in passing (no connection, 408, 429, 5xx) are tried again until `timeoutMs` is over.
 * @throws TypeError that names the option that is wrong
 */
export function createClient(options: ClientOptions): Client {
  const transport = createTransport(readOptions(options))
  return {
    transactions: createTransactions(transport),
    payments: createPayments(transport),
    refunds: createRefunds(transport),
    cards: createCards(transport),
    discrepancies: createDiscrepancies(transport),
    events: createEvents(transport),
    webhookEndpoints: createWebhookEndpoints(transport),
  }
}
