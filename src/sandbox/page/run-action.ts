import { z } from 'zod'
import { findOpenRefund, findPayment, findTransaction } from '../control/find-objects.ts'
import { ControlError, positiveAmount, readInput } from '../control-input.ts'
import { faultInput } from '../faults/take-fault.ts'
import { sendPaymentIpn } from '../ipn/send-ipn.ts'
import { refundAtPortal, settleRefund } from '../paygate/refunds.ts'
import type { SandboxState } from '../state.ts'

const key = { id: z.string(), merchantCode: z.string() }

/** What the buttons of the page send, by the member `action`. */
const actionInput = z.discriminatedUnion('action', [
  z.object({ action: z.literal('refund'), ...key, amount: positiveAmount }),
  z.object({ action: z.literal('settle'), ...key, outcome: z.enum(['success', 'failure']) }),
  z.object({ action: z.literal('change'), ...key, status: z.enum(['SUCCESS', 'FAILED']) }),
  z.object({ action: z.literal('notify'), ...key }),
  z.object({
    action: z.literal('fault'),
    command: z.string(),
    kind: z.string(),
    times: z.string(),
  }),
  z.object({ action: z.literal('behave') }),
])

type Action = z.output<typeof actionInput>

/** The response code of a refund that a person lets fail. */
const FAILED = 1

/**
 * Does what a button of the page asks for. Notifications are sent in the background.
 * @returns what was done, for the page
 * @throws ControlError naming the invalid field, or an object that is unknown or has ended
 */
export function runAction(state: SandboxState, given: Record<string, unknown>): string {
  const { data: action, error } = actionInput.safeParse(given)
  if (action === undefined) {
    const [issue] = error.issues
    throw new ControlError(422, issue?.path.join('.') ?? '', issue?.message ?? 'invalid')
  }
  switch (action.action) {
    case 'fault':
      return addFault(state, action)
    case 'behave':
      state.faults.length = 0
      return 'The gateway behaves again.'
    default:
      return changeObject(state, action)
  }
}

function changeObject(
  state: SandboxState,
  action: Exclude<Action, { action: 'fault' | 'behave' }>,
): string {
  const { background } = state
  switch (action.action) {
    case 'refund': {
      const payment = findPayment(state, action)
      const input = { amount: action.amount }
      const { notified } = refundAtPortal(state, payment, input)
      background.run(() => notified)
      return `${action.amount} of payment ${payment.id} was refunded at the portal.`
    }
    case 'settle': {
      const refund = findOpenRefund(state, action)
      const code = action.outcome === 'failure' ? FAILED : undefined
      background.run(() => settleRefund(state, refund, code))
      return `Refund ${refund.requestId} ended: ${action.outcome}.`
    }
    case 'change': {
      const payment = findPayment(state, action)
      payment.status = action.status
      background.run(() => sendPaymentIpn(state, payment.transaction))
      return `Payment ${payment.id} is ${action.status}, and its notification is sent.`
    }
    case 'notify': {
      const transaction = findTransaction(state, action)
      background.run(() => sendPaymentIpn(state, transaction))
      return `The notification of ${transaction.transactionId} is sent again.`
    }
  }
}

function addFault(
  { faults }: SandboxState,
  { command, kind, times }: Extract<Action, { action: 'fault' }>,
): string {
  const number = times.trim() === '' ? {} : { times: Number(times) }
  const fault = readInput(faultInput, JSON.stringify({ command, kind, ...number }))
  faults.push(fault)
  const often = fault.times === undefined ? 'until the faults are cleared' : `${fault.times} times`
  return `${command} answers with the fault "${kind}" ${often}.`
}
