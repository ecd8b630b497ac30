import { z } from 'zod'

/**
 * Returns the OpenAPI schema of a notification as `readNotification` reads it (specification 6). Other members
 * are accepted, because the signature covers them.
 */
export function describeNotification(prefix: string) {
  const id = z.union([z.string().min(1).max(128), z.number()])
  const hint = z.union([z.string(), z.number()]).nullable().optional().meta({
    description:
      'A hint: compared with the answer to a query, never trusted by itself. A value of another type is ignored',
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
      [`${prefix}_PaymentID`]: hint,
      [`${prefix}_OrderID`]: hint,
      [`${prefix}_MerchantTxnID`]: hint,
      [`${prefix}_Currency`]: hint,
      [`${prefix}_Amount`]: hint,
      [`${prefix}_ResponseCode`]: hint,
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
