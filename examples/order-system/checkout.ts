import { z } from 'zod'

/** Opens a checkout at the gateway; resolves with its transaction id and the URL where the customer pays. */
export type OpenCheckout = (amount: string) => Promise<{ transactionId: string; payAt: string }>

const Created = z.object({
  transactionId: z.string(),
  payments: z.tuple([z.object({ id: z.string() })]),
})

/**
 * Replace this with your gateway's checkout. The sandbox has none: this makes a payment in progress, and
 * the customer pays by changing its status.
 */
export function createCheckout(sandboxUrl: string): OpenCheckout {
  return async (amount) => {
    const response = await fetch(`${sandboxUrl}/sandbox/transactions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        amount,
        payments: [{ amount, paymentMethod: 'CC', status: 'PROCESSING' }],
      }),
    })
    if (!response.ok) throw new Error(`the gateway's checkout answered ${response.status}`)
    const { transactionId, payments } = Created.parse(await response.json())
    const payAt = `${sandboxUrl}/sandbox/payments/${encodeURIComponent(payments[0].id)}?ipn=true`
    return { transactionId, payAt }
  }
}
