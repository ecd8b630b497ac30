import { createHash } from 'node:crypto'

/**
 * Derives the id of a refund, which is the request id on the wire, from the request: the same merchant and key
 * give the same id also from a database that lost the refund's row, so that the gateway can refuse it as repeated.
 * @param idempotencyKey without its quotes
 * @returns a UUID of version 8 (RFC 9562), in lower case
 */
export function deriveRefundId(merchantCode: string, idempotencyKey: string): string {
  const bytes = createHash('sha256')
    .update(['ipn-processor/refund', merchantCode, idempotencyKey].join('\0'))
    .digest()
    .subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
