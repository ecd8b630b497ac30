import type { ServerResponse } from 'node:http'
import { onTestFinished } from 'vitest'
import { withKey } from './api.ts'
import type { TestDatabase } from './database.ts'
import { type Seen, serve } from './gateway.ts'
import { MERCHANT, startTestService } from './service.ts'

export const CARDS = '/v2/vc/virtual-cards'
export const TOKENS = '/v2/auth/oauth2/token'

/** A card with every member of the specification's table (2.2), as compact JSON like a gateway's. */
export function writeDetail(more: Record<string, unknown> = {}): string {
  const data = {
    requestId: 'REQ-1',
    virtualCardRequestId: 'VC-1',
    merchantCode: MERCHANT.merchantCode,
    cardData: {
      cardHolderName: 'NGUYỄN VĂN A',
      cardNumber: '411111******1111',
      cardExpiryDate: '2028-12',
      cardBrand: 'visa',
      cardCVV: '***',
    },
    cardPolicy: {
      policyRequestId: 'POL-1',
      policyRevision: 3,
      cardCurrency: 'VND',
      cardLimit: '#10000.50#',
      minTransAmount: '#0.10#',
      maxTransAmount: '#9007199254740993.0001#',
      autoCloseCard: false,
      activeOnCreate: true,
      supportedMccGroup: ['5411', '5812'],
    },
    status: 'ACTIVED',
    extraInfo: { note: 'kept', nested: [{ unknown: null }] },
    createdAt: '2026-11-20T09:33:03.254Z',
    updatedAt: '2026-11-21T09:33:03.254Z',
    ...more,
  }
  return writeEnvelope(data)
}

/** A list item with every member of the specification's table (2.3). */
export function makeItem(more: Record<string, unknown> = {}) {
  return {
    requestId: 'REQ-1',
    virtualCardRequestId: 'VC-1',
    merchantId: '64f1a2b3c4d5e6f708192a3b',
    merchantCode: MERCHANT.merchantCode,
    merchantEmail: 'shop@example.com',
    cardData: { cardHolderName: 'NGUYEN VAN A', cardBrand: 'mastercard' },
    cardPolicy: {
      policyRequestId: 'POL-1',
      policyRevision: 1,
      cardCurrency: 'VND',
      cardLimit: '#20000000#',
      minTransAmount: '#1E+3#',
      maxTransAmount: '#10000.50#',
      autoCloseCard: true,
    },
    status: 'INACTIVED',
    extraInfo: {},
    createdAt: '2026-11-20T09:33:03.254Z',
    updatedAt: '2026-11-21T09:33:03.254Z',
    ...more,
  }
}

export function writeList(docs: readonly unknown[]): string {
  return writeEnvelope({ docs, totalDocs: docs.length, totalPages: 1 })
}

/** Numbers between `#` are written unchanged: JavaScript would reformat them. */
function writeEnvelope(data: unknown): string {
  const envelope = { code: 1, state: 2, data, message: 'Successful', svcResponseId: 'RESP-1' }
  return JSON.stringify(envelope).replace(/"#([^#]*)#"/g, '$1')
}

type Respond = (response: ServerResponse, request: Seen, nth: number) => void

/** Starts a scripted gateway: `cards` answers reads, `tokens` answers token requests; by default the tokens are T1, T2, … */
export async function serveCards(cards: Respond, tokens: Respond = giveToken()) {
  const reads: Seen[] = []
  const fetches: Seen[] = []
  const { url } = await serve((response, request) => {
    const isToken = request.path.startsWith(TOKENS)
    const seen = isToken ? fetches : reads
    seen.push(request)
    if (isToken) tokens(response, request, seen.length)
    else cards(response, request, seen.length)
  })
  return { url, reads, fetches }
}

export function giveToken(more: object = { token_type: 'Bearer', expires_in: 3600 }): Respond {
  return (response, _, nth) => response.end(JSON.stringify({ access_token: `T${nth}`, ...more }))
}

export const CLIENT = { GATEWAY_CLIENT_ID: 'shop', GATEWAY_CLIENT_SECRET: 'client-secret-hunter2' }

/**
 * Starts the service with a gateway until the test ends. Its log can be read as one text, and `questions`
 * counts the reads that reached the cache.
 */
export async function startCards(
  database: TestDatabase,
  gatewayUrl: string,
  settings: Record<string, string> = CLIENT,
) {
  const service = await startTestService(database, gatewayUrl, {
    settings: { ROLE: 'web', ...settings },
  })
  onTestFinished(() => service.stop())
  const logged: string[] = []
  for (const level of ['debug', 'info', 'warn', 'error'] as const) {
    service.ctx.log[level] = (...args: unknown[]) => void logged.push(JSON.stringify(args))
  }
  const { get: askCache } = service.ctx.cardCache
  let questions = 0
  service.ctx.cardCache.get = (...question) => {
    questions += 1
    return askCache(...question)
  }
  const get = (path: string, key?: string, headers: Record<string, string> = {}) =>
    fetch(`${service.url}${CARDS}${path}`, withKey(key, headers))
  return { service, get, logged: () => logged.join('\n'), questions: () => questions }
}
