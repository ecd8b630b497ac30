import { computeSecureHash, findSignedParams } from '../../src/gateway/signature.ts'
import { MERCHANT } from './service.ts'

export type Members = Readonly<Record<string, unknown>>

/** Signs a notification as the gateway signs it, whatever its values are; what no rule can sign gets some hash. */
export function signMembers(members: Members): Members {
  const params = { svc_MerchantCode: MERCHANT.merchantCode, svc_Command: 'PAY', ...members }
  const exclude = String(params.svc_Command) === 'REFUND' ? [] : ['TransAmount', 'ExtData']
  const rule = { prefix: 'svc', exclude }
  const isSignable = findSignedParams(params, rule) !== undefined
  const hash = isSignable ? computeSecureHash(params, MERCHANT.secret, rule) : '0'.repeat(64)
  return { ...params, svc_SecureHash: hash }
}
