import type { Options } from './machine.ts'
import { NO_DEDUPES } from './planted.ts'

/**
 * A world, how large it is, and how long its longest shortest play. Each closes: what is behind a limit would not have been
 * looked at.
 */
type Sized = { options: Options; states: number; transitions: number; depth: number }

/** Those that every run explores. */
export const WORLDS: Record<string, Sized> = {
  'one refund, and one thing that goes wrong': {
    options: { faults: 1 },
    ...{ states: 9_255, transitions: 28_699, depth: 44 },
  },
  'a gateway that remembers nothing, and one thing that goes wrong': {
    options: { faults: 1, settings: NO_DEDUPES },
    ...{ states: 2_340, transitions: 6_649, depth: 18 },
  },
  'a refund made at the portal beside it': {
    options: { amounts: [30, 30], hasPortal: true },
    ...{ states: 4_060, transitions: 11_810, depth: 22 },
  },
  'two refunds, of which the payment holds one': {
    options: { amounts: [30, 30] },
    ...{ states: 1_454, transitions: 3_569, depth: 27 },
  },
  'people who approve and decide, and money that comes back': {
    options: { hasPeople: true, needsApproval: true },
    ...{ states: 2_518, transitions: 6_602, depth: 28 },
  },
}

/** Those that only the nightly tests explore: a million states together. */
export const LARGE_WORLDS: Record<string, Sized> = {
  'one refund, and an answer that does not list its payment, or not as it was': {
    options: { faults: 2, hasOddAnswers: true },
    ...{ states: 213_770, transitions: 803_762, depth: 51 },
  },
  'one refund, and codes that are open, unclear, repeated, or not of its amount': {
    options: { faults: 2, hasOddCodes: true },
    ...{ states: 217_273, transitions: 798_961, depth: 47 },
  },
  'rows and attempts that are lost, and the same key again': {
    options: { faults: 2, losesRows: true, losesAttempts: true },
    ...{ states: 112_987, transitions: 385_623, depth: 51 },
  },
  'the same, with a gateway that may remember nothing': {
    options: { faults: 2, losesRows: true, losesAttempts: true, settings: NO_DEDUPES },
    ...{ states: 96_692, transitions: 334_445, depth: 36 },
  },
  'a refund made at the portal, and one thing that goes wrong': {
    options: { faults: 1, amounts: [30, 30], hasPortal: true },
    ...{ states: 144_593, transitions: 536_059, depth: 52 },
  },
  'one made before the payment was first seen, in its first answer': {
    options: { faults: 1, paid: 80, amounts: [30, 30], hasPortal: true, early: ['shown'] },
    ...{ states: 40_743, transitions: 142_249, depth: 48 },
  },
  'one made before the payment was first seen, and notified': {
    options: { faults: 1, paid: 80, amounts: [30, 30], hasPortal: true, early: ['told'] },
    ...{ states: 83_356, transitions: 281_547, depth: 49 },
  },
  'two refunds, and one thing that goes wrong': {
    options: { faults: 1, amounts: [30, 30] },
    ...{ states: 56_860, transitions: 186_154, depth: 59 },
  },
  'people who decide, approvals, and what is lost': {
    options: {
      ...{ faults: 1, hasPeople: true, needsApproval: true },
      ...{ losesRows: true, losesAttempts: true },
    },
    ...{ states: 116_210, transitions: 377_253, depth: 57 },
  },
  'people who decide about a refund made elsewhere': {
    options: { amounts: [30, 30], hasPortal: true, hasPeople: true },
    ...{ states: 94_258, transitions: 306_696, depth: 36 },
  },
  'the same, of one that the first answer showed': {
    options: { paid: 80, amounts: [30, 30], hasPortal: true, early: ['shown'], hasPeople: true },
    ...{ states: 29_094, transitions: 92_983, depth: 31 },
  },
  'people who hold, approve and decide': {
    options: { hasPeople: true, needsApproval: true, hasHolds: true },
    ...{ states: 2_598, transitions: 6_942, depth: 28 },
  },
}
