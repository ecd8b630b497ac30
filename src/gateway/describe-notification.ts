import { z } from 'zod'

/**
 * Returns the OpenAPI schema of a notification as `readNotification` reads it (specification 6). Other members
 * are accepted, because the signature covers them.
 */
export function describeNotification(prefix: string) {
  const id = z.union([z.string().min(1).max(128), z.number()])
  const describeHint = (what: string) =>
    z
      .union([z.string(), z.number()])
      .nullable()
      .optional()
      .meta({
        description: `${what}: a hint, never trusted by itself; of another type it is ignored`,
      })
  return z
    .looseObject({
      [`${prefix}_Command`]: z.string().nullable().optional().meta({
        description: '`REFUND` for the result of a refund; any other value for a payment',
      }),
      [`${prefix}_MerchantCode`]: z
        .union([z.string(), z.number()])
        .nullable()
        .optional()
        .meta({ description: 'May be omitted if there is only one merchant account' }),
      [`${prefix}_TransactionID`]: id
        .optional()
        .meta({ description: 'Required in the notification of a payment' }),
      [`${prefix}_RequestID`]: id
        .optional()
        .meta({ description: 'Required in the notification of a refund: the id of the refund' }),
      [`${prefix}_PaymentID`]: describeHint('The payment that was refunded'),
      [`${prefix}_OrderID`]: describeHint('The order of the shop'),
      [`${prefix}_MerchantTxnID`]: describeHint('The id that the merchant gave the transaction'),
      [`${prefix}_Currency`]: describeHint('The currency of the amount'),
      [`${prefix}_Amount`]: describeHint('The amount of the payment or the refund'),
      [`${prefix}_ResponseCode`]: describeHint("The gateway's result, of which 0 is a success"),
      [`${prefix}_SecureHash`]: z
        .string()
        .optional()
        .meta({ description: 'The signature, computed by the rules of the gateway' }),
    })
    .meta({
      examples: [
        {
          [`${prefix}_Command`]: 'PAY',
          [`${prefix}_MerchantCode`]: 'UFLIYL',
          [`${prefix}_TransactionID`]: '240830080146NDTISR',
          [`${prefix}_OrderID`]: 'DH1',
          [`${prefix}_Amount`]: 20000000,
          [`${prefix}_Currency`]: 'VND',
          [`${prefix}_SecureHash`]:
            '8be17a1cc403dd26d7a175aac42e04f5e173849a3507c6f6e2cf4a70600c276b',
        },
      ],
    })
}
