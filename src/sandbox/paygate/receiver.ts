import { z } from 'zod'

const receiver = z.object({
  accountName: z.string().min(1),
  accountNumber: z.string().min(1),
  swiftCode: z.string().min(1),
})

/**
 * Reads `svc_Receiver`: standard padded Base64 of a JSON object with three string members
 * (specification 4.3.2).
 * @returns `undefined` if it is anything else
 */
export function readReceiver(text: string): z.output<typeof receiver> | undefined {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.toString('base64') !== text) return undefined
  try {
    return receiver.safeParse(JSON.parse(bytes.toString('utf8'))).data
  } catch {
    return undefined
  }
}

/** Masks a receiver for the journal: only the last four digits of the account number are kept. */
export function maskReceiver(text: unknown): unknown {
  const known = typeof text === 'string' ? readReceiver(text) : undefined
  if (known === undefined) return '(unreadable)'
  return { ...known, accountNumber: `•••• ${known.accountNumber.slice(-4)}` }
}
