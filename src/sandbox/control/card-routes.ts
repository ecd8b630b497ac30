import { Hono } from 'hono'
import { cardInput, putCard, showCard } from '../cards/card.ts'
import { expireTokens, tokenModeInput } from '../cards/tokens.ts'
import { readInput } from '../input.ts'
import type { SandboxState } from '../state.ts'
import { answerControl } from './answer.ts'
import { findBook } from './find.ts'

/** Control of virtual cards and their tokens. No answer repeats what `raw` holds. */
export function makeCardControl(state: SandboxState): Hono {
  const app = new Hono()

  app.post('/cards', async (c) => {
    const input = readInput(cardInput, await c.req.text())
    const book = findBook(state, input.merchantCode)
    const { card, isNew } = putCard(state, book, input)
    return answerControl(c, showCard(book, { ...card, raw: {} }), isNew ? 201 : 200)
  })

  app.put('/token-mode', async (c) => {
    state.tokens.mode = readInput(tokenModeInput, await c.req.text())
    return answerControl(c, state.tokens.mode)
  })

  app.post('/tokens/expire', (c) => answerControl(c, { expired: expireTokens(state.tokens) }))

  return app
}
