import type { StoredHold } from '../../payments/view.ts'
import { listRefunds, type RefundFilter } from '../../refunds/find.ts'
import { type RefundView, showRefund } from '../../refunds/view.ts'
import type { ConsoleContext } from '../context.ts'
import { t } from '../view.ts'

/** How many refunds a form lists. */
const SHOWN_REFUNDS = 20

/** Lists the newest refunds, newest first. */
export async function listNewestRefunds(
  ctx: ConsoleContext,
  filter: RefundFilter,
): Promise<RefundView[]> {
  const { rows } = await listRefunds(ctx, filter, SHOWN_REFUNDS, undefined)
  return rows.slice(0, SHOWN_REFUNDS).map((one) => showRefund(ctx.encryption, one))
}

/** Explains what would keep a refund from being requested, although something is left. */
export function warnOfHolds(
  { config }: ConsoleContext,
  hold: StoredHold,
  accountHold: StoredHold,
): string[] {
  return [
    ...(hold ? [t('refundForm.alerts.held', { reason: hold.reason })] : []),
    ...(accountHold ? [t('refundForm.alerts.accountHeld', { reason: accountHold.reason })] : []),
    ...(config.REFUNDS_ENABLED ? [] : [t('refundForm.alerts.disabled')]),
  ]
}
