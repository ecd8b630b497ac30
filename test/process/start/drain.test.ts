import { expect, it } from 'vitest'
import { type ServiceProcess, settingsFor, startServiceProcess } from '../../support/process.ts'
import { postIpn, signIpn } from '../../support/service.ts'
import { makeTransaction } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

const startWith = (DRAIN_MS: string) =>
  startServiceProcess({
    ...settingsFor(rig.database.url, rig.sandbox.url),
    ...{ DRAIN_MS, GATEWAY_TIMEOUT_MS: '60000' },
  })

/** Reads the whole answer: undici throws where a connection that is not kept ends before that. */
async function ask({ url }: ServiceProcess, path: string): Promise<Response> {
  const answer = await fetch(url + path)
  await answer.arrayBuffer()
  return answer
}

const isReady = async (service: ServiceProcess) => (await ask(service, '/readyz')).status === 200
const readConnection = async (service: ServiceProcess) =>
  (await ask(service, '/healthz')).headers.get('connection')

async function readLease(transactionId: string) {
  const [row] = await rig.database.sql`
    select lease_id is not null as claimed, due_at <= now() as due
    from transactions where transaction_id = ${transactionId}`
  return row
}

it('after SIGTERM /readyz is 503 first, and for DRAIN_MS it goes on, whatever further signals come', async () => {
  const service = await startWith('60000')
  expect(await isReady(service)).toBe(true)
  expect(await readConnection(service)).toBe('keep-alive')
  service.child.kill('SIGTERM')
  await waitUntil(async () => !(await isReady(service)), { what: 'not ready' })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) service.child.kill(signal)
  expect((await ask(service, '/healthz')).status).toBe(200)
  // The next request of this client goes over a new connection, perhaps to another process.
  expect(await readConnection(service)).toBe('close')
  expect(service.child.exitCode).toBeNull()
  expect(service.output().out).toContain('"drainMs":60000')
  expect(service.output().out).not.toContain('"stopping')
})

it('after DRAIN_MS it stops with work in flight, exits with 0 within 10 s, and loses nothing', async () => {
  const service = await startWith('700')
  await makeTransaction(rig, 'T-2')
  await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'acceptThenHang', times: 1 })
  expect((await postIpn(service.url, signIpn({ svc_TransactionID: 'T-2' }))).status).toBe(200)
  await waitUntil(async () => (await readLease('T-2'))?.claimed, { what: 'a query in flight' })
  const signalled = performance.now()
  service.child.kill('SIGTERM')
  expect(await service.ended).toBe(0)
  const took = performance.now() - signalled
  expect(took).toBeGreaterThan(700)
  expect(took).toBeLessThan(10_700)
  expect(await readLease('T-2')).toEqual({ claimed: false, due: true })
})
