/** Texts of the page of one refund, where people approve, decide and cancel. */
export const decisionTexts = {
  title: (amount: string) => `Refund of ${amount}`,
  asked: {
    title: 'What is asked',
    amount: 'Amount',
    payment: 'Payment',
    method: 'Paid by',
    transaction: 'Transaction',
    order: 'Order',
    account: 'Merchant account',
    askedBy: 'Asked by',
    forPerson: (person: string) => `for ${person}`,
    askedAt: 'Asked at',
    reason: 'Reason',
    receiver: 'Paid to',
    receiverText: (name: string, number: string, swift: string) => `${name}, ${number}, ${swift}`,
    sameWay: 'The way it was paid',
    status: 'Status',
    failure: 'Refusal or failure',
    approval: 'Approval',
    decision: 'Decided',
    requestId: 'Request id at the gateway',
    gatewayReference: 'The gateway’s reference',
    fee: 'Fee of the gateway',
    hold: 'Held',
    accountHold: 'The account is held',
    paid: 'Amount of the payment',
    left: 'Left to refund beside it',
    story: 'Open the whole story',
  },
  by: (name: string, reason: string | null) => (reason ? `${name}: ${reason}` : name),
  decided: (outcome: string, name: string, reason: string) => `${outcome}, by ${name}: ${reason}`,
  failure: (code: string, message: string) => (message === '' ? code : `${message} (${code})`),
  outcomes: {
    succeeded: 'The money moved',
    failed: 'The money did not move',
    returned: 'The money came back',
  },
  outcomeHints: {
    succeeded: 'The amount stays taken until the gateway’s figures show it.',
    failed:
      'The amount can be refunded again. Choose this only if the gateway confirmed that nothing was paid.',
    returned:
      'For example because the receiver’s account is closed. The amount is free once a second person says so too, or the gateway’s figures are lower by it.',
  },
  proof: {
    title: 'The evidence',
    succeeded: 'Speaks for: the money moved',
    failed: 'Speaks for: the money did not move',
    neither: 'Proves neither',
    none: 'Nothing.',
    kinds: {
      answer: 'Answer of the gateway',
      notification: 'Notification',
      growth: 'Refunded amount',
      decision: 'Earlier decision',
    },
    cause: 'Why it has this status',
  },
  support: {
    title: 'What to ask the gateway’s support',
    lead: 'Quote the request id. Ask for an answer in writing, and give its ticket number as the reason of your decision.',
    question: (refund: { account: string; payment: string; amount: string; id: string }) =>
      `Account ${refund.account}, payment ${refund.payment}: was the refund of ${refund.amount} with request id ${refund.id} paid out? If so, on which day and with which reference; if not, why, and will it still be?`,
    requestId: 'Request id',
    attempts: 'We sent it at these times',
  },
  attempts: {
    at: 'Sent at',
    answer: 'Answer',
    hash: 'HMAC of what was sent',
    none: 'It was never sent.',
    answered: (code: string | null, message: string) =>
      `code ${code ?? '–'}${message ? `: ${message}` : ''}`,
    unanswered: (message: string) => `no answer${message ? `: ${message}` : ''}`,
    unsent: (message: string) => `nothing was sent${message ? `: ${message}` : ''}`,
    inProgress: 'being sent',
  },
  steps: {
    title: 'Its steps',
    at: 'When',
    from: 'From',
    to: 'To',
    cause: 'Why',
    begin: 'New',
    sending: 'Being sent',
  },
  approve: {
    title: 'Approve or decline',
    preview: (amount: string, payment: string) =>
      `Once approved, ${amount} of payment ${payment} are sent to the gateway:`,
    reason: 'Reason',
    reasonHint: 'It is shown to all who read this refund. You can leave it out.',
    approve: 'Approve',
    decline: 'Decline',
    expires: (at: string) => `Without an approval it fails at ${at}.`,
  },
  decide: {
    title: 'Decide the outcome',
    lead: 'Decide only what you know from the gateway or the bank. Your name and the reason are recorded.',
    outcome: 'What happened',
    reason: 'Reason',
    reasonHint: 'For example the ticket of the gateway’s support.',
    submit: 'Record the decision',
    against: 'This decision contradicts the evidence:',
    againstLabel: 'I decide it all the same; this is recorded as a discrepancy',
    alone: {
      asked:
        'You asked for this refund yourself. No other person may decide it for this account, so you can; that is recorded.',
      decided:
        'You decided this refund before. No other person may decide it for this account, so you can decide it again; that is recorded.',
    },
  },
  confirm: {
    title: 'Did it happen?',
    lead: 'That the money moved was only concluded from the gateway’s figures, so its amount stays taken. If you know from the gateway or the bank that it happened, say so: it then counts as refunded.',
    submit: 'It happened',
    /** Recorded as the reason. */
    reason: 'confirmed in the console that it happened',
  },
  cancel: {
    title: 'Cancel it',
    lead: 'Nothing of it was sent. Cancelled, it fails, and its amount can be refunded again.',
    reason: 'Reason',
    submit: 'Cancel the refund',
  },
  notNow: {
    title: 'What you can do',
    asked:
      'You asked for this refund, or it was asked for in your name: another person has to decide about it.',
    expired: 'It was not approved in time, and fails within a minute.',
    notified:
      'The gateway has notified this refund although it was not sent from here. The notification decides it within moments.',
    too_early: (duration: string) =>
      `The gateway may still answer. If it does not, you can decide the outcome in ${duration}.`,
    not_sent: 'It was not sent yet, so there is no outcome to decide.',
    being_sent: 'It is being sent at this moment. Reload the page for the result.',
    failed_unsent:
      'It failed before anything was sent. Nothing is left to decide; ask for a new refund.',
    failed_already: 'It has failed. You can decide that the money moved after all.',
    succeeded_already:
      'It has succeeded. You can decide that the money came back, or did not move.',
    not_succeeded: 'Only a refund that has ended can have come back.',
    released: 'The money came back, and its amount can be refunded again.',
    same_person:
      'You decided this refund as it is now. What is not offered here, another person can decide.',
    too_early_alone: (duration: string) =>
      `You decided this refund, and no other person may decide it for this account. You can decide it again in ${duration}.`,
    grown:
      'More of this payment was refunded than is known of, and that may be this refund: it can neither be cancelled nor declined. First open the refund that was concluded from it and say whether it happened, or resolve the discrepancy.',
    noScope: 'Your roles let you read it. Decisions are up to people with the roles for them.',
    hold: 'It is held, so it is not sent, also after an approval.',
  },
  review: {
    title: 'Assign and note',
    assignee: 'Taken care of by',
    assignTo: 'Assign to',
    unassigned: 'Not assigned',
    toMe: 'Assign to me',
    assign: 'Assign',
    note: 'Note',
    notePlaceholder: 'What you found out',
    add: 'Add the note',
    notes: 'Notes',
    noNotes: 'No notes yet.',
    through: 'A discrepancy about this refund is open. Assign and note it there:',
    noteLine: (name: string) => `by ${name}`,
  },
  problems: {
    reason: 'Give a reason.',
    tooLong: 'At most 500 characters, without line breaks.',
    outcome: 'Choose what happened.',
    text: 'Write a note.',
    name: 'Choose a person of the list.',
  },
  refused: {
    changed:
      'Nothing was decided: this has changed since you opened it. What you see now is the current state.',
    same_person:
      'Nothing was decided: you asked for this refund or decided it before, so another person has to decide.',
    not_awaiting_approval:
      'Nothing was decided: this refund does not wait for an approval any more.',
    not_decidable: 'Nothing was decided: this cannot be decided now.',
    already_sent: 'It was not cancelled: it may have been sent already.',
    not_cancellable: 'It was not cancelled: it has ended, or needs a decision.',
    growth_may_be_its_own:
      'It was neither cancelled nor declined: more of its payment was refunded than is known of, and that may be this refund.',
    unavailable: 'Nothing was decided: it is busy at this moment. Try again.',
    discrepancy_resolved: 'Nothing was changed: this discrepancy is resolved already.',
    invalid_request:
      'Nothing was added: there are 100 notes already. Keep the rest in your ticket system.',
    against_evidence: 'Nothing was decided yet: the decision contradicts the evidence.',
  },
  happened: {
    approved: (name: string) => `${name} approved it.`,
    declined: (name: string) => `${name} declined it.`,
    youApproved: 'You have approved it already; it was not done twice.',
    youDeclined: 'You have declined it already; it was not done twice.',
    decided: (name: string, outcome: string) => `${name} decided: ${outcome}.`,
    youDecided: (outcome: string) => `You have decided already: ${outcome}. It was not done twice.`,
    resolved: (name: string, reason: string) => `${name} resolved it: ${reason}`,
    agreed: 'Both sides agree again.',
  },
} as const

export const decisionNotices = {
  refundApproved: 'Approved. The refund is sent to the gateway within moments.',
  refundDeclined: 'Declined. The refund has failed, and nothing was sent.',
  refundDecided: 'The decision is recorded.',
  refundCancelled: 'Cancelled. Nothing was sent.',
  noteAdded: 'The note is added.',
  assigned: 'The assignment is saved.',
} as const
