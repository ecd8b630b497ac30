import { LosslessNumber } from 'lossless-json'
import { z } from 'zod'

const text = z.string().min(1)

const common = { MerchantCode: text, Version: text, SecureHash: text }

/** QUERY_PT (specification 4.3.1), by names without prefix. */
export const queryRequest = z.object({ TransactionID: text, ...common })

/** REFUND (specification 4.3.2); the amount is a number, the receiver may be left out. */
export const refundRequest = z.object({
  RequestID: text,
  PaymentID: text,
  Amount: z.instanceof(LosslessNumber),
  Receiver: z.string().optional(),
  ...common,
})

export type QueryRequest = z.output<typeof queryRequest>
export type RefundRequest = z.output<typeof refundRequest>
