import { createSandbox, type TestSandbox } from 'ipn-processor/sandbox'
import { describe, expect, it, onTestFinished } from 'vitest'
import { useMerchant } from '../../support/sandbox.ts'

async function create(...options: Parameters<typeof createSandbox>): Promise<TestSandbox> {
  const sandbox = await createSandbox(...options)
  onTestFinished(() => sandbox.stop())
  return sandbox
}

describe('a sandbox for tests', () => {
  it('makes a payment and resolves after delivering its notification', async () => {
    const { ipnUrl, received } = await useMerchant()
    const sandbox = await create()
    sandbox.setIpnUrl(ipnUrl)
    const made = await sandbox.makePayment({ amount: '10000.50', orderId: 'DH1' })
    expect(made).toEqual({
      transactionId: expect.stringMatching(/^\d{12}[A-Z]{6}$/),
      paymentId: expect.stringMatching(/^\d+$/),
    })
    expect(JSON.parse(received[0] ?? '')).toMatchObject({
      svc_MerchantCode: 'DEMO',
      svc_TransactionID: made.transactionId,
      svc_OrderID: 'DH1',
    })
    expect(sandbox.listCalls('ipn')).toMatchObject([{ outcome: 'acknowledged', attempt: 1 }])
  })

  it('adds to an existing transaction under the given ids', async () => {
    const sandbox = await create()
    const transactionId = 'T1'
    await sandbox.makePayment({ transactionId, amount: 5, status: 'FAILED' })
    expect(await sandbox.makePayment({ transactionId, amount: 5, paymentId: '77' })).toEqual({
      transactionId,
      paymentId: '77',
    })
  })

  it('applies a fault until the faults are cleared', async () => {
    const sandbox = await create()
    const ask = async () => (await fetch(`${sandbox.url}/v2/vc/virtual-cards`)).status
    sandbox.addFault({ command: 'cards', kind: 'code', code: 503 })
    expect(await ask()).toBe(503)
    sandbox.clearFaults()
    expect(await ask()).toBe(401)
  })

  it('names the invalid member', async () => {
    const sandbox = await create()
    await expect(sandbox.makePayment({ amount: '1.23456' })).rejects.toThrow(/^amount: expected/)
    await expect(sandbox.makePayment({ amount: 1, merchantCode: 'X' })).rejects.toThrow(
      'merchantCode: no such account',
    )
    expect(() => sandbox.addFault({ command: 'ipn', kind: 'delay', delayMs: 0 })).toThrow(
      'delayMs: a delay needs',
    )
  })
})
