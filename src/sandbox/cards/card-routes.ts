import type { HttpBindings } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { accepts } from 'hono/accepts'
import { answerRequest, takeFault } from '../faults.ts'
import { type CardsEntry, recordEntry } from '../journal.ts'
import type { SandboxMerchant, SandboxState } from '../state.ts'
import {
  answerCards,
  type CardAnswer,
  refuseWithCode,
  resolveCode,
  writeEnvelope,
} from './card-answers.ts'
import { answerCardList, readCardParameters, showCard } from './show-cards.ts'
import { checkBearer } from './tokens.ts'

type CardContext = Context<{ Bindings: HttpBindings }>

/**
 * Virtual cards (specification 4.1, 4.2). Checks are in a fixed order: token, parameters, card. A token
 * gives access to the cards of its accounts only.
 */
export function makeCardRoutes(state: SandboxState): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>()
  app.get('/', (c) =>
    serve(state, c, null, (merchants) =>
      answerCardList(merchants, c.req.queries(), state.settings.cards),
    ),
  )
  app.get('/:virtualCardRequestId', (c) => {
    const id = c.req.param('virtualCardRequestId')
    return serve(state, c, id, (merchants) => {
      const merchant = merchants.find(({ cards }) => cards.has(id))
      const card = merchant?.cards.get(id)
      if (merchant === undefined || card === undefined) return answerCards('unknownCard')
      return answerCards('success', { data: showCard(merchant, card) })
    })
  })
  return app
}

async function serve(
  state: SandboxState,
  c: CardContext,
  virtualCardRequestId: string | null,
  read: (merchants: SandboxMerchant[]) => CardAnswer,
): Promise<Response> {
  const bearer = checkBearer(state.tokens, c.req.header('authorization'))
  const fault = takeFault(state.faults, 'cards', state.random)
  const entry = recordEntry<CardsEntry>(state.journal, {
    command: 'cards',
    at: new Date().toISOString(),
    outcome: fault?.kind ?? 'received',
    operation: virtualCardRequestId === null ? 'list' : 'detail',
    status: null,
    code: null,
    workCode: null,
    token: bearer.verdict,
    virtualCardRequestId,
    query: readCardParameters(c.req.queries()),
    language: c.req.header('accept-language') ?? null,
  })
  const codeOf = (answer: CardAnswer) => resolveCode(answer, state.settings.cards.successCode)
  const execute = async () => {
    const answer =
      bearer.verdict === 'accepted'
        ? read(filterMerchants(state, bearer.merchantCodes))
        : answerCards('unauthorised')
    entry.workCode = codeOf(answer)
    return answer
  }
  const language = accepts(c, { header: 'Accept-Language', supports: ['en', 'vi'], default: 'en' })
  const write = (answer: CardAnswer) =>
    writeEnvelope(answer, { language, prefix: state.settings.fieldPrefix, code: codeOf(answer) })
  const send = (answer: CardAnswer) => {
    entry.status = answer.status
    entry.code = codeOf(answer)
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'content-language': language,
      ...(answer.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    }
    return new Response(write(answer), { status: answer.status, headers })
  }
  const { background } = state
  const exchange = { c, background, execute, refuse: refuseWithCode, send, write }
  return answerRequest(fault, entry, exchange)
}

function filterMerchants(
  { merchants }: SandboxState,
  merchantCodes: readonly string[],
): SandboxMerchant[] {
  return [...merchants.values()].filter(({ merchantCode }) => merchantCodes.includes(merchantCode))
}
