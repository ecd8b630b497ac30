import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type SandboxRig, useMerchant, useSandbox } from '../../support/sandbox.ts'
import { waitUntil } from '../../support/wait-until.ts'

const PAYMENT = { id: 'P1', amount: '100', paymentMethod: 'CC', status: 'SUCCESS' }
const KEY = { id: 'P1', merchantCode: 'UFLIYL' }

const press = ({ url }: SandboxRig, fields: Record<string, string>, headers = {}) =>
  fetch(`${url}/actions`, {
    method: 'POST',
    body: new URLSearchParams(fields),
    headers,
    redirect: 'manual',
  })

/** Presses a button and reads the page that it leads to. */
async function pressed(rig: SandboxRig, fields: Record<string, string>): Promise<string> {
  const answer = await press(rig, fields)
  expect(answer.status).toBe(303)
  return (await fetch(rig.url + (answer.headers.get('location') ?? ''))).text()
}

const make = (rig: SandboxRig, payment: object = {}) =>
  rig.control('POST', '/transactions', {
    transactionId: 'T1',
    payments: [{ ...PAYMENT, ...payment }],
    ipn: false,
  })

const Transaction = z.object({
  orderId: z.string(),
  payments: z.array(z.object({ status: z.string(), refundedAmount: z.string() })),
})
const read = async (rig: SandboxRig) =>
  Transaction.parse(await (await rig.control('GET', '/transactions/T1')).json())

describe('the buttons of the page', () => {
  it('refund a payment at the portal, with its notification', async () => {
    const { ipnUrl, received } = await useMerchant()
    const rig = await useSandbox({ ipnUrl })
    await make(rig)
    const page = await pressed(rig, { action: 'refund', ...KEY, amount: '30' })
    expect(page).toContain('30 of payment P1 was refunded at the portal.')
    expect(page).toContain('value="70"')
    expect((await read(rig)).payments).toMatchObject([{ refundedAmount: '30' }])
    await waitUntil(() => received.length === 1, { what: 'the notification' })
    expect(received[0]).toContain('"svc_Command":"REFUND"')
  })

  it('end an open refund, as a success and as a failure', async () => {
    const rig = await useSandbox()
    await rig.control('PUT', '/refund-mode', { settleMs: null })
    await rig.control('POST', '/seed', { seed: 1, transactions: 60 })
    const html = await (await fetch(rig.url)).text()
    const open = [
      ...html.matchAll(
        /name="id" value="([^"]+)"\/><input type="hidden" name="merchantCode" value="UFLIYL"\/><input type="hidden" name="outcome" value="success"/g,
      ),
    ]
    expect(open.length).toBeGreaterThan(1)
    for (const [index, outcome] of ['success', 'failure'].entries()) {
      const id = open[index]?.[1] ?? ''
      const page = await pressed(rig, { action: 'settle', id, merchantCode: 'UFLIYL', outcome })
      expect(page).toContain(`Refund ${id} ended: ${outcome}.`)
      const again = await press(rig, { action: 'settle', id, merchantCode: 'UFLIYL', outcome })
      expect(again.status).toBe(409)
      expect(await again.text()).toContain('Nothing was done. requestId: the refund has ended')
    }
  })

  it('let a payment in progress succeed or fail, and notify again', async () => {
    const { ipnUrl, received } = await useMerchant()
    const rig = await useSandbox({ ipnUrl })
    await make(rig, { status: 'PROCESSING' })
    expect(await (await fetch(rig.url)).text()).toContain('>Succeed</button>')
    await pressed(rig, { action: 'change', ...KEY, status: 'SUCCESS' })
    expect((await read(rig)).payments).toMatchObject([{ status: 'SUCCESS' }])
    await pressed(rig, { action: 'notify', ...KEY, id: 'T1' })
    await waitUntil(() => received.length === 2, { what: 'both notifications' })
  })

  it('set faults and clear them', async () => {
    const rig = await useSandbox()
    const page = await pressed(rig, {
      action: 'fault',
      command: 'QUERY_PT',
      kind: 'garbage',
      times: '2',
    })
    expect(page).toContain('<code>QUERY_PT</code> garbage, 2 times')
    await pressed(rig, { action: 'fault', command: '*', kind: 'reset', times: '' })
    expect(rig.state.faults).toMatchObject([{ times: 2 }, { command: '*' }])
    expect(await pressed(rig, { action: 'behave' })).toContain('The gateway behaves again.')
    expect(rig.state.faults).toEqual([])
  })

  it.each([
    [{ action: 'refund', ...KEY, amount: '0' }, 422, 'amount: expected an amount above 0'],
    [{ action: 'refund', ...KEY, amount: '101' }, 409, 'amount: exceeds the remaining balance'],
    [{ action: 'refund', ...KEY, id: 'P2', amount: '1' }, 404, 'paymentId: unknown: P2'],
    [{ action: 'explode' }, 422, 'action: '],
    [{ action: 'fault', command: 'x', kind: 'garbage', times: '' }, 422, 'command: '],
    [{ action: 'fault', command: 'ipn', kind: 'reset', times: 'x' }, 422, 'times: '],
  ])('%o is refused with its reason', async (fields, status, reason) => {
    const rig = await useSandbox()
    await make(rig)
    const answer = await press(
      rig,
      Object.fromEntries(Object.entries(fields).map(([k, v]) => [k, String(v)])),
    )
    expect(answer.status).toBe(status)
    expect(await answer.text()).toContain(`Nothing was done. ${reason}`)
    expect((await read(rig)).payments).toMatchObject([{ refundedAmount: '0' }])
  })

  it('do nothing for a page of another site, whose texts are not shown either', async () => {
    const rig = await useSandbox()
    await make(rig)
    const headers = { origin: 'https://evil.example' }
    expect((await press(rig, { action: 'refund', ...KEY, amount: '1' }, headers)).status).toBe(403)
    expect((await read(rig)).payments).toMatchObject([{ refundedAmount: '0' }])
    expect(await (await fetch(`${rig.url}/?done=Call%20this%20number`)).text()).not.toContain(
      'Call',
    )
  })
})

describe('the page', () => {
  it('refreshes itself until told not to, and links to the service', async () => {
    const rig = await useSandbox({ ipnUrl: 'http://127.0.0.1:9/ipn' })
    const page = await (await fetch(rig.url)).text()
    expect(page).toContain('<meta http-equiv="refresh" content="5;url=/"/>')
    expect(page).toContain('href="http://127.0.0.1:9/docs"')
    const still = await (await fetch(`${rig.url}/?still`)).text()
    expect(still).not.toContain('http-equiv="refresh"')
    expect(still).toContain('<a href="/">')
  })

  it('makes a payment of an order by its id, and keeps what was entered beside an error', async () => {
    const rig = await useSandbox()
    const submit = (fields: Record<string, string>) =>
      fetch(rig.url, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' })
    const fields = { amount: '5', paymentMethod: 'QR', status: 'SUCCESS', orderId: ' DH-7 ' }
    expect((await submit(fields)).status).toBe(303)
    expect((await submit(fields)).status).toBe(303)
    const page = await (await fetch(rig.url)).text()
    expect(page.match(/<span>DH-7<\/span>/g)).toHaveLength(4)
    const refused = await (await submit({ ...fields, amount: 'x' })).text()
    expect(refused).toContain('name="orderId" value=" DH-7 "')
    expect(refused).not.toContain('http-equiv="refresh"')
  })
})
