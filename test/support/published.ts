/** The examples of the gateway's specification, with the hashes it publishes for `SHOP` of ./sandbox.ts. */
export const PUBLISHED_QUERY = {
  svc_Command: 'QUERY_PT',
  svc_MerchantCode: 'UFLIYL',
  svc_TransactionID: '240830080146NDTISR',
  svc_Version: '1',
}
export const PUBLISHED_QUERY_HASH =
  'df594d1e467bd327a30fa45ce259987718a68bd54cc67afe74d1e15e255182a4'

export const PUBLISHED_REFUND = {
  svc_MerchantCode: 'UFLIYL',
  svc_Command: 'REFUND',
  svc_RequestID: 'a68de39f-ea76-43fb-848f-b605b4aaf44e',
  svc_PaymentID: '1439211',
  svc_Amount: 10000,
  svc_Version: '1',
  svc_Receiver:
    'eyJhY2NvdW50TmFtZSI6Ik5HVVlFTiBWQU4gQSIsImFjY291bnROdW1iZXIiOiIxMjM0NTY3ODkiLCJzd2lmdENvZGUiOiJBU0NCVk5WWCJ9',
}
export const PUBLISHED_REFUND_HASH =
  '88cafbc3bc1312a4dbae11dedf17819ea6462b85a218298417a917f1797597fa'

/** The request as it is without a receiver, which is left out unless the payer paid by QR. */
export const PUBLISHED_REFUND_WITHOUT_RECEIVER = (({ svc_Receiver: _, ...rest }) => rest)(
  PUBLISHED_REFUND,
)

const PAID = {
  svc_Amount: '20000000',
  svc_Command: 'PAY',
  svc_Currency: 'VND',
  svc_Locale: 'vi',
  svc_MerchantCode: 'UFLIYL',
  svc_MerchantTxnID: 'T1',
  svc_OrderID: 'DH1',
  svc_OrderInfo: 'shoes',
  svc_ResponseCode: '0',
  svc_ResponseMsg: 'Success',
  svc_TransactionID: '240830080146NDTISR',
  svc_Version: '1',
}

/** The notifications of payments in the members that gateways of this family publish, `PUBLISHED_QUERY`'s first. */
export const PUBLISHED_PAYMENTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'a payment': PAID,
  'a payment in part': { ...PAID, svc_PayToken: '9f8e7d', svc_TransAmount: '5000000' },
}

const REFUNDED = {
  svc_Amount: '10000',
  svc_Command: 'REFUND',
  svc_Fee: '0',
  svc_MerchantCode: 'UFLIYL',
  svc_OrderID: 'DH1',
  svc_PaymentID: '1439211',
  svc_RequestID: 'a68de39f-ea76-43fb-848f-b605b4aaf44e',
  svc_ResponseCode: '0',
  svc_ResponseMsg: 'Success',
  svc_TransactionID: '5SYNM1OELUND',
  svc_Version: '1',
}

/** The notifications of `PUBLISHED_REFUND`'s end. */
export const PUBLISHED_REFUNDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'a refund': REFUNDED,
  'a refund that failed': { ...REFUNDED, svc_ResponseCode: '33', svc_ResponseMsg: 'Failed' },
}
