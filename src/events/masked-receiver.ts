/** What a masked account number begins with. */
export const MASK = '••••'

/** Whether the JSON of a receiver has a masked account number, as receivers are shown. */
export function isMaskedReceiver(text: string): boolean {
  const receiver: unknown = JSON.parse(text)
  return (
    typeof receiver === 'object' &&
    receiver !== null &&
    'accountNumber' in receiver &&
    String(receiver.accountNumber).startsWith(MASK)
  )
}
