import { LosslessNumber } from 'lossless-json'
import type { MerchantAccount } from '../config/accounts.ts'
import { shortenAmount } from '../money.ts'
import { type CallSettings, prepareCall } from './prepare-call.ts'
import { readPaymentsAnswer, readRefundAnswer } from './read-answer.ts'
import { openTransport, type TransportSettings } from './transport.ts'
import type { GatewayCall, PaymentList, PreparedCall } from './types.ts'

export type GatewaySettings = CallSettings &
  TransportSettings & {
    /** Names, without prefix, that stay out of the hash of a REFUND request. */
    refundHashExclude: readonly string[]
    accounts: readonly MerchantAccount[]
  }

/** The parameters of a REFUND request. */
export type RefundOrder = {
  merchantCode: string
  /** The request id on the wire: the same in every attempt. */
  refundId: string
  paymentId: string
  /** A decimal string. */
  amount: string
  /** The members in the order of the specification: their Base64 text enters the hash. */
  receiver?: { accountName: string; accountNumber: string; swiftCode: string } | undefined
}

export type GatewayClient = {
  /**
   * Queries the payments of a transaction (QUERY_PT, specification 4.3.1). Never rejects.
   * @throws Error when the merchant account is not in the settings
   */
  queryPayments(
    query: { merchantCode: string; transactionId: string },
    signal?: AbortSignal,
  ): Promise<GatewayCall<PaymentList>>
  /**
   * Prepares a refund (REFUND, specification 4.3.2) without sending it.
   * @returns a call whose answer is the gateway's refund id, if the gateway gave one
   * @throws Error when the merchant account is not in the settings
   */
  prepareRefund(order: RefundOrder): PreparedCall<string | undefined>
  close(): Promise<void>
}

/**
 * Creates a client with one pool of connections. Answers carry no signature: they are trusted because of TLS
 * to the configured host.
 */
export function createGatewayClient(settings: GatewaySettings): GatewayClient {
  const { prefix, refundHashExclude } = settings
  const transport = openTransport(settings)
  const secrets = new Map(settings.accounts.map((one) => [one.merchantCode, one.secret]))

  function findSecret(merchantCode: string): string {
    const secret = secrets.get(merchantCode)
    if (secret === undefined) throw new Error(`no account ${merchantCode} in the settings`)
    return secret
  }

  return {
    queryPayments({ merchantCode, transactionId }, signal) {
      return prepareCall(settings, transport, {
        command: 'QUERY_PT',
        merchantCode,
        fields: { TransactionID: transactionId },
        exclude: [],
        secret: findSecret(merchantCode),
        read: (body) => readPaymentsAnswer(body, prefix),
      }).send(signal)
    },
    prepareRefund({ merchantCode, refundId, paymentId, amount, receiver }) {
      return prepareCall(settings, transport, {
        command: 'REFUND',
        merchantCode,
        fields: {
          RequestID: refundId,
          PaymentID: paymentId,
          Amount: new LosslessNumber(shortenAmount(amount)),
          Receiver: receiver && Buffer.from(JSON.stringify(receiver)).toString('base64'),
        },
        exclude: refundHashExclude,
        secret: findSecret(merchantCode),
        read: (body) => readRefundAnswer(body, prefix),
      })
    },
    close: () => transport.close(),
  }
}
