import { z } from 'zod'

/**
 * A notification as `readNotification` takes it (specification 6), for the API's document: what is read of
 * it, and that everything else is taken, too, because the signature covers it.
 */
export function describeNotification(prefix: string) {
  const id = z.string().min(1).max(128)
  const hint = z
    .union([z.string(), z.number()])
    .nullable()
    .optional()
    .meta({ description: 'A hint: compared with what the gateway answers, never believed' })
  return z
    .looseObject({
      [`${prefix}_Command`]: z
        .string()
        .nullable()
        .optional()
        .meta({ description: '`REFUND` for the result of a refund, anything else for a payment' }),
      [`${prefix}_MerchantCode`]: z
        .string()
        .nullable()
        .optional()
        .meta({ description: 'May be missing where there is a single account' }),
      [`${prefix}_TransactionID`]: id
        .optional()
        .meta({ description: 'Needed in the notification of a payment' }),
      [`${prefix}_RequestID`]: id
        .optional()
        .meta({ description: 'Needed in the notification of a refund: the id of the refund' }),
      [`${prefix}_PaymentID`]: hint,
      [`${prefix}_OrderID`]: hint,
      [`${prefix}_MerchantTxnID`]: hint,
      [`${prefix}_Currency`]: hint,
      [`${prefix}_Amount`]: hint,
      [`${prefix}_ResponseCode`]: hint,
      [`${prefix}_SecureHash`]: z
        .string()
        .optional()
        .meta({ description: 'The signature, by the rules of the gateway' }),
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
