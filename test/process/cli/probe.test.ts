import { createServer } from 'node:http'
import { expect, it } from 'vitest'
import { Report, runCli } from '../../support/cli.ts'
import { listen } from '../../support/gateway.ts'
import { settingsFor } from '../../support/process.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig()
const { merchantCode } = MERCHANT

async function probe(args: string[] = [], changed: Record<string, string> = {}) {
  const settings = { ...settingsFor(rig.database.url, rig.sandbox.url), ...changed }
  const { code, out, err } = await runCli(['probe', '--json', ...args], settings)
  expect(err).toBe('')
  const { ok, findings } = Report.parse(JSON.parse(out))
  expect(code).toBe(ok ? 0 : 1)
  return findings
}

const errorsOf = (findings: Awaited<ReturnType<typeof probe>>) =>
  findings.filter(({ severity }) => severity === 'error')

it('reads what a right installation can ask for, and sends no refund', async () => {
  const made = await rig.control('POST', '/transactions', {
    transactionId: 'T-PROBED',
    payments: [{ id: 'P-PROBED', amount: '150000', paymentMethod: 'CC', status: 'SUCCESS' }],
    ipn: false,
  })
  expect(made).toBeDefined()
  const unknown = await probe()
  expect(errorsOf(unknown)).toEqual([])
  expect(unknown.map(({ id }) => id)).toEqual(
    expect.arrayContaining(['gateway', 'round trip', 'clock', 'signature', 'query', 'cards']),
  )
  const known = await probe(['--transaction', 'T-PROBED', '--merchant', merchantCode])
  expect(errorsOf(known)).toEqual([])
  expect(known.find(({ id }) => id === 'payment')?.finding).toContain(
    'payment P-PROBED: status SUCCESS, amount 150000, refundedAmount 0, paymentMethod CC',
  )
  const calls = await rig.control('GET', '/calls?command=REFUND', undefined)
  expect(calls).toMatchObject({ data: [] })
})

it.each([
  ['a wrong secret', { GATEWAY_SECRET: 'not-the-secret-of-this-account' }, 'check GATEWAY_SECRET'],
  ['a wrong prefix', { GATEWAY_FIELD_PREFIX: 'abc' }, 'GATEWAY_FIELD_PREFIX=svc'],
])('names %s in one line, with what fits', async (_, changed, advice) => {
  const [signature, ...others] = errorsOf(await probe([], changed))
  expect(others).toEqual([])
  expect(signature).toMatchObject({ id: 'signature', action: expect.stringContaining(advice) })
})

it('names an encoding that the gateway does not take, and the one that it does', async () => {
  const url = await listen(
    createServer((request, response) => {
      const isForm = request.headers['content-type']?.includes('form')
      let body = ''
      request.on('data', (chunk) => {
        body += chunk
      })
      request.on('end', () => {
        const isSpoiled = body.includes('0'.repeat(64))
        const code = !isForm ? 5 : isSpoiled ? 6 : 32
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ svc_ResponseCode: code, svc_ResponseMsg: '' }))
      })
    }),
  ).then((port) => `http://127.0.0.1:${port}`)
  const [signature] = errorsOf(await probe([], { GATEWAY_BASE_URL: url }))
  expect(signature?.action).toContain('GATEWAY_ENCODING=form')
})

it('names what of an answer would not be read, and a clock that is off', async () => {
  const port = await listen(
    createServer((request, response) => {
      request.resume().on('end', () => {
        response.setHeader('date', new Date(Date.now() - 600_000).toUTCString())
        response.setHeader('content-type', 'application/json')
        const entries = [{ id: 'P-1', status: 'SUCCESS', amount: 1, paymentMethod: 'QR' }]
        response.end(JSON.stringify({ svc_ResponseCode: 0, svc_ResponseData: entries }))
      })
    }),
  )
  const findings = await probe([], { GATEWAY_BASE_URL: `http://127.0.0.1:${port}` })
  expect(findings.find(({ id }) => id === 'payment')).toMatchObject({
    severity: 'error',
    finding: expect.stringContaining('has no refundedAmount'),
  })
  expect(findings.find(({ id }) => id === 'clock')).toMatchObject({
    severity: 'warning',
    finding: expect.stringMatching(/this machine is (599|600|601)\.\d s ahead of the gateway/),
  })
  expect(findings.find(({ id }) => id === 'signature')?.finding).toContain('a wrong one as well')
})

it('names a gateway that cannot be reached, and refuses an account that is not there', async () => {
  const found = errorsOf(await probe([], { GATEWAY_BASE_URL: 'http://127.0.0.1:1' }))
  expect(found.map(({ id }) => id)).toEqual(['gateway', 'query'])
  const settings = settingsFor(rig.database.url, rig.sandbox.url)
  expect(await runCli(['probe', '--merchant', 'OTHER1'], settings)).toMatchObject({
    code: 2,
    err: expect.stringContaining(`known accounts: ${merchantCode}`),
  })
})
