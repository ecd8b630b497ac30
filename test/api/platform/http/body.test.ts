import { createServer } from 'node:http'
import { expect, it } from 'vitest'
import { readBody } from '../../../../src/http/body.ts'
import { listen } from '../../../support/gateway.ts'

it('with the budget exhausted, 4 KiB of a body are read and not a byte more', async () => {
  const budget = { bytes: 0 }
  const server = createServer((request, response) => {
    readBody(request, { limit: 65_536, timeoutMs: 60_000, budget }).then(({ kind }) =>
      response.setHeader('connection', 'close').end(kind),
    )
  })
  const url = `http://127.0.0.1:${await listen(server)}`
  const send = async (bytes: number) =>
    (await fetch(url, { method: 'POST', body: 'x'.repeat(bytes) })).text()
  expect([await send(4_096), await send(4_097)]).toEqual(['whole', 'over_budget'])
})
