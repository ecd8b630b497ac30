import { Hono } from 'hono'
import { expect, it } from 'vitest'
import { DomainError } from '../../../../src/errors.ts'
import { holdRefusals } from '../../../../src/http/app.ts'
import type { HttpEnv } from '../../../../src/http/problems.ts'

const app = new Hono<HttpEnv>()
app.onError((_, c) => c.text('too many', 429))
app.use(holdRefusals())
app.get('/refused', () => {
  throw new DomainError('rate_limited', 'too many')
})

it('a 429 is held back, so that whoever repeats it at once gains nothing', async () => {
  const startedAt = performance.now()
  const { status } = await app.request('/refused')
  expect(status).toBe(429)
  // A timer never ends early, give or take the resolution of the clock.
  expect(performance.now() - startedAt).toBeGreaterThan(95)
})
