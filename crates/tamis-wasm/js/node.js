// The same as for `require`, so that a program that uses both has one library.
import tamis from "./node.cjs";

export const { Filter, plan } = tamis;
