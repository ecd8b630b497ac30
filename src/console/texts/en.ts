import { accountNotices, accountTexts } from './account.ts'
import { decisionNotices, decisionTexts } from './decisions.ts'
import { discrepancyTexts } from './discrepancies.ts'
import { discrepancyHelp } from './discrepancy-help.ts'
import { discrepancyNotices, discrepancyPageTexts } from './discrepancy-page.ts'
import { durationTexts } from './durations.ts'
import { errorTexts } from './errors.ts'
import { frameNotices, frameTexts } from './frame.ts'
import { listTexts } from './lists.ts'
import { peopleNotices, peopleTexts } from './people.ts'
import { reasonNotices, reasonTexts } from './reasons.ts'
import { refundFormNotices, refundFormTexts } from './refund-form.ts'
import { refundTexts } from './refunds.ts'
import { searchNotices, searchTexts } from './search.ts'
import { signInNotices, signInTexts } from './sign-in.ts'
import { stateTexts } from './states.ts'
import { storyNotices, storyTexts } from './story.ts'
import { taskNotices, taskTexts } from './tasks.ts'
import { timelineTexts } from './timeline.ts'

/** Every text that the console shows, in English. A text with values in it is a function. */
export const TEXTS = {
  frame: frameTexts,
  errors: errorTexts,
  account: accountTexts,
  people: peopleTexts,
  signIn: signInTexts,
  states: stateTexts,
  discrepancies: discrepancyTexts,
  refunds: refundTexts,
  lists: listTexts,
  search: searchTexts,
  story: storyTexts,
  timeline: timelineTexts,
  refundForm: refundFormTexts,
  reasons: reasonTexts,
  discrepancyHelp,
  discrepancyPage: discrepancyPageTexts,
  decisions: decisionTexts,
  durations: durationTexts,
  tasks: taskTexts,
} as const

/** Messages after a redirect, by the code that stands in the URL. */
export const NOTICES = {
  ...frameNotices,
  ...accountNotices,
  ...peopleNotices,
  ...searchNotices,
  ...signInNotices,
  ...storyNotices,
  ...refundFormNotices,
  ...reasonNotices,
  ...taskNotices,
  ...decisionNotices,
  ...discrepancyNotices,
} as const

export type NoticeCode = keyof typeof NOTICES
