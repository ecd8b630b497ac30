/** The specification's tables of the gateway's operations as data: a new operation is a new row. */

export type Type = 'string' | 'number' | 'boolean' | 'array' | 'object'

export type Member = {
  /** As on the wire; of a payment entry by its own name. */
  name: string
  type: Type
  /** A value that is right. */
  sample: unknown
  optional?: true
}

export type Operation = {
  command: 'QUERY_PT' | 'REFUND'
  section: string
  request: readonly Member[]
  /** Names, without prefix, that stay out of the request's hash. */
  hashExclude: readonly string[]
  response: readonly Member[]
  /** The members of `ResponseData`, or of its entries where it is a list. */
  data: readonly Member[]
}

/** 2.4, Payment entry. */
export const STATUSES = ['SUCCESS', 'FAILED', 'PROCESSING'] as const
export const METHODS = ['QR', 'ATM', 'CC'] as const

/** Section 7: 0 is success, any other value is failure. Those that such gateways are known to send. */
export const FAILURE_CODES = [1, 9, 18, 19, 30, 31, 32, 33, 34, 37, 99, -1] as const

/** A transaction of one payment, which the samples are about. */
export const TRANSACTION = '240830080146NDTISR'
export const PAYMENT = '1439211'

const common = {
  merchant: { name: 'svc_MerchantCode', type: 'string', sample: 'UFLIYL' },
  version: { name: 'svc_Version', type: 'string', sample: '1' },
  hash: { name: 'svc_SecureHash', type: 'string', sample: '' },
} as const

const head = {
  code: { name: 'svc_ResponseCode', type: 'number', sample: 0 },
  message: { name: 'svc_ResponseMsg', type: 'string', sample: 'Success' },
} as const

export const OPERATIONS: readonly Operation[] = [
  {
    command: 'QUERY_PT',
    section: '4.3.1',
    request: [
      { name: 'svc_Command', type: 'string', sample: 'QUERY_PT' },
      common.merchant,
      { name: 'svc_TransactionID', type: 'string', sample: TRANSACTION },
      common.version,
      common.hash,
    ],
    hashExclude: [],
    response: [head.code, { name: 'svc_ResponseData', type: 'array', sample: [] }, head.message],
    data: [
      { name: 'id', type: 'string', sample: PAYMENT },
      { name: 'status', type: 'string', sample: 'SUCCESS' },
      { name: 'amount', type: 'number', sample: 10000.5 },
      { name: 'paymentMethod', type: 'string', sample: 'CC' },
      { name: 'refundedAmount', type: 'number', sample: 0 },
    ],
  },
  {
    command: 'REFUND',
    section: '4.3.2',
    request: [
      { name: 'svc_Command', type: 'string', sample: 'REFUND' },
      common.merchant,
      { name: 'svc_RequestID', type: 'string', sample: 'a68de39f-ea76-43fb-848f-b605b4aaf44e' },
      { name: 'svc_PaymentID', type: 'string', sample: PAYMENT },
      { name: 'svc_Amount', type: 'number', sample: 1 },
      {
        name: 'svc_Receiver',
        type: 'string',
        sample: Buffer.from(
          '{"accountName":"NGUYEN VAN A","accountNumber":"123456789","swiftCode":"ASCBVNVX"}',
        ).toString('base64'),
        optional: true,
      },
      common.version,
      common.hash,
    ],
    hashExclude: ['RequestID'],
    response: [head.code, { name: 'svc_ResponseData', type: 'object', sample: {} }, head.message],
    data: [{ name: 'transId', type: 'string', sample: '5SYNM1OELUND' }],
  },
]

const SAMPLES: readonly { type: Type; value: unknown }[] = [
  { type: 'string', value: 'text' },
  { type: 'number', value: 5 },
  { type: 'boolean', value: true },
  { type: 'array', value: [] },
  { type: 'object', value: {} },
]

/** One value of every other JSON type; `null` is none of them. As rows: a list would be taken for arguments. */
export function listWrong(type: Type): { value: unknown }[] {
  return SAMPLES.filter((one) => one.type !== type)
}

/** The samples of a table as an object. */
export function fill(members: readonly Member[]): Record<string, unknown> {
  return Object.fromEntries(members.map(({ name, sample }) => [name, sample]))
}
