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
