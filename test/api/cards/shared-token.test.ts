import { afterAll, expect, it } from 'vitest'
import { expectProblem, OTHER, writeMerchantsFile } from '../../support/api.ts'
import { startCards } from '../../support/cards.ts'
import { useSandbox } from '../../support/sandbox.ts'
import { MERCHANT } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const STRANGER = { merchantCode: 'STRANGER', secret: 'secret-of-a-third-account' }
const file = writeMerchantsFile([MERCHANT, OTHER])
afterAll(() => file.remove())

const database = useTestDatabase()

/** A sandbox of three accounts whose cards one token sees, and the service with two of them. */
async function start() {
  const client = { clientId: 'group', clientSecret: 'secret-of-the-group' }
  const sharedToken = { kind: 'client' as const, url: '', ...client }
  const sandbox = await useSandbox({ accounts: [MERCHANT, OTHER, STRANGER], sharedToken })
  const started = await startCards(database, sandbox.url, {
    MERCHANTS_FILE: file.path,
    GATEWAY_CLIENT_ID: client.clientId,
    GATEWAY_CLIENT_SECRET: client.clientSecret,
  })
  const listOwners = async (query: string) => {
    const { data } = JSON.parse(await (await started.get(query)).text())
    return [...new Set(data.docs.map((one: { merchantCode: string }) => one.merchantCode))].sort()
  }
  return { ...started, ...sandbox, listOwners }
}

it('one token of the sandbox for several accounts: a key for all of them reads the cards of ours only', async () => {
  const { get, listOwners, readCalls } = await start()
  expect((await get('/VC-UFLIYL-0001')).status).toBe(200)
  expect((await get('/VC-OTHER1-0001')).status).toBe(200)
  await expectProblem(await get('/VC-STRANGER-0001'), 404, 'card_not_found')
  await expectProblem(await get('/VC-UFLIYL-0001?merchantCode=OTHER1'), 404, 'card_not_found')
  await expectProblem(await get('?merchantCode=STRANGER'), 404, 'merchant_not_found')
  expect(await listOwners('?pageSize=100')).toEqual(['OTHER1', 'UFLIYL'])
  expect(await listOwners('?pageSize=100&merchantCode=OTHER1')).toEqual(['OTHER1'])
  expect(await readCalls('token')).toHaveLength(1)
})
