import { Hono } from 'hono'
import { cardInput, putCard } from '../cards/put-card.ts'
import { showCard } from '../cards/show-card.ts'
import { expireTokens, tokenModeInput } from '../cards/tokens.ts'
import { readInput } from '../control-input.ts'
import type { SandboxState } from '../state.ts'
import { findMerchant } from './find-objects.ts'
import { respondJson } from './respond-json.ts'

/** Control routes of virtual cards and their tokens. Responses never contain members of `raw`. */
export function makeCardControlRoutes(state: SandboxState): Hono {
  const app = new Hono()

  app.post('/cards', async (c) => {
    const input = readInput(cardInput, await c.req.text())
    const merchant = findMerchant(state, input.merchantCode)
    const { card, isNew } = putCard(state, merchant, input)
    return respondJson(c, showCard(merchant, { ...card, raw: {} }), isNew ? 201 : 200)
  })

  app.put('/token-mode', async (c) => {
    state.tokens.mode = readInput(tokenModeInput, await c.req.text())
    return respondJson(c, state.tokens.mode)
  })

  app.post('/tokens/expire', (c) => respondJson(c, { expired: expireTokens(state.tokens) }))

  return app
}
