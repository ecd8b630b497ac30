import type { HttpBindings } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { accepts } from 'hono/accepts'
import { takeFault } from '../faults/faults.ts'
import { followFault } from '../faults/misbehave.ts'
import { type CardsEntry, recordEntry } from '../journal.ts'
import type { Book, SandboxState } from '../state.ts'
import { answerCards, type CardAnswer, refuseWithCode, writeEnvelope } from './answers.ts'
import { showCard } from './card.ts'
import { answerCardList, readCardParameters } from './list.ts'
import { checkBearer } from './tokens.ts'

type CardContext = Context<{ Bindings: HttpBindings }>

/**
 * Virtual cards (specification 4.1, 4.2). Checked in a fixed order: token, parameters, card. A token
 * sees the cards of its accounts only.
 */
export function makeCardRoutes(state: SandboxState): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>()
  app.get('/', (c) => serve(state, c, null, (books) => answerCardList(books, c.req.queries())))
  app.get('/:virtualCardRequestId', (c) => {
    const id = c.req.param('virtualCardRequestId')
    return serve(state, c, id, (books) => {
      const book = books.find(({ cards }) => cards.has(id))
      const card = book?.cards.get(id)
      if (book === undefined || card === undefined) return answerCards('unknownCard')
      return answerCards('success', { data: showCard(book, card) })
    })
  })
  return app
}

async function serve(
  state: SandboxState,
  c: CardContext,
  virtualCardRequestId: string | null,
  read: (books: Book[]) => CardAnswer,
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
  const work = async () => {
    const answer =
      bearer.verdict === 'accepted'
        ? read(findBooks(state, bearer.merchantCodes))
        : answerCards('unauthorised')
    entry.workCode = answer.code
    return answer
  }
  const language = accepts(c, { header: 'Accept-Language', supports: ['en', 'vi'], default: 'en' })
  const write = (answer: CardAnswer) =>
    writeEnvelope(answer, { language, prefix: state.settings.fieldPrefix })
  const send = (answer: CardAnswer) => {
    entry.status = answer.status
    entry.code = answer.code
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'content-language': language,
      ...(answer.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    }
    return new Response(write(answer), { status: answer.status, headers })
  }
  if (fault) return followFault(fault, { c, state, work, refuse: refuseWithCode, send, write })
  const answer = await work()
  entry.outcome = 'answered'
  return send(answer)
}

function findBooks({ books }: SandboxState, merchantCodes: readonly string[]): Book[] {
  return [...books.values()].filter(({ merchantCode }) => merchantCodes.includes(merchantCode))
}
